//! The parser against recorded and broken maps, and against this process.

use super::*;

const PLAIN: &str = include_str!("../../../../fixtures/maps/plain.txt");
const BROKEN: &str = include_str!("../../../../fixtures/maps/broken.txt");

#[test]
fn a_recorded_map_is_read_line_by_line() {
    let map = parse(PLAIN);
    assert_eq!(map.len(), PLAIN.lines().count());
    let cuda = &map[7];
    assert_eq!(cuda.range, 0x7f5e_2000_0000..0x7f5e_2310_0000);
    assert!(cuda.protection.read && cuda.protection.execute && !cuda.protection.write);
    assert_eq!((cuda.offset, cuda.inode), (0x10_0000, 9001));
    assert_eq!(cuda.path, "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04");
    assert_eq!(map[8].path, "/opt/my tools/lib with blanks.so (deleted)");
    assert_eq!(map[5].protection, Protection::default());
    assert_eq!(map[4].path, "");
    assert!(map[6].shared && !map[7].shared);
}

#[test]
fn an_address_is_found_in_its_region_alone() {
    let map = parse(PLAIN);
    assert_eq!(find(&map, 0x7f5e_2000_0000).map(|entry| entry.inode), Some(9001));
    assert_eq!(find(&map, 0x7f5e_230f_ffff).map(|entry| entry.inode), Some(9001));
    assert_eq!(find(&map, 0x7f5e_2310_0000), None);
    assert_eq!(find(&map, 0), None);
    assert_eq!(find(&[], 1), None);
}

#[test]
fn broken_lines_say_what_is_wrong_and_are_left_out() {
    assert!(parse(BROKEN).is_empty());
    let errors: Vec<_> = BROKEN
        .lines()
        .map(|line| line.parse::<MapsEntry>().expect_err("every line is broken").what)
        .collect();
    assert_eq!(
        errors,
        [
            "no address range",
            "no `-` in the address range",
            "the start is not hexadecimal",
            "the end is not above the start",
            "fewer than four permissions",
            "no inode",
            "the start is not hexadecimal",
        ]
    );
}

#[test]
fn this_process_has_its_own_code_in_its_map() {
    let map = read_self().expect("the map can be read");
    let here = this_process_has_its_own_code_in_its_map as fn() as usize as u64;
    let entry = find(&map, here).expect("a function lies in a region");
    assert!(entry.protection.execute);
    assert!(map.is_sorted_by_key(|entry| entry.range.start));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(line in "\\PC{0,80}") {
        let _ = parse(&line);
    }

    #[test]
    fn what_was_written_is_read_back(start in 0_u64..1 << 47, pages in 1_u64..1 << 20, offset: u64, inode: u64) {
        let line = format!("{start:x}-{:x} rw-p {offset:08x} fe:00 {inode} /a b", start + pages * 4096);
        let entry: MapsEntry = line.parse().expect("a whole line");
        proptest::prop_assert_eq!(entry.range, start..start + pages * 4096);
        proptest::prop_assert_eq!((entry.offset, entry.inode, entry.path.as_str()), (offset, inode, "/a b"));
    }
}
