//! The names that a library exports, read from its header.
//!
//! A link stub needs no more: libcuda and libnvidia-ml are in no wheel, since
//! they belong to the driver. Pure functions over the header's text.

use std::collections::BTreeSet;

/// The functions of libcuda by cuda.h.
///
/// These are the functions that are declared, older forms included, and those
/// that a plain name stands for: `#define cuMemAlloc cuMemAlloc_v2`. A name
/// behind `__CUDA_API_PTSZ` or `__CUDA_API_PTDS` exists for both stream modes.
pub fn cuda(header: &str) -> BTreeSet<String> {
    let text = without_comments(header);
    let mut names = declared(&text, "cu", |before| before.first() == Some(&"CUDAAPI"));
    for (name, target) in macros(&text) {
        let modes = [("__CUDA_API_PTDS(", "_ptds"), ("__CUDA_API_PTSZ(", "_ptsz")];
        let wrapped = modes.iter().find_map(|(wrapper, suffix)| {
            let inner = target.strip_prefix(wrapper)?.strip_suffix(')')?.trim();
            is_function(inner, "cu").then_some((inner, *suffix))
        });
        if let Some((inner, suffix)) = wrapped {
            names.insert(inner.to_owned());
            names.insert(format!("{inner}{suffix}"));
        } else if is_function(name, "cu")
            && is_function(target, "cu")
            && (names.contains(name) || names.contains(target))
        {
            names.insert(target.to_owned());
        }
    }
    names
}

/// The functions of libnvidia-ml by nvml.h: those that are declared, and both
/// sides of `#define nvmlInit nvmlInit_v2`, since the library has both.
pub fn nvml(header: &str) -> BTreeSet<String> {
    let text = without_comments(header);
    let mut names = declared(&text, "nvml", |before| {
        // `nvmlReturn_t DECLDIR name(`, and `const DECLDIR char* name(`.
        before.iter().any(|word| matches!(*word, "DECLDIR" | "nvmlReturn_t"))
    });
    for (name, target) in macros(&text) {
        if is_function(name, "nvml")
            && is_function(target, "nvml")
            && (names.contains(name) || names.contains(target))
        {
            names.insert(name.to_owned());
            names.insert(target.to_owned());
        }
    }
    names
}

/// The source of a library with these functions. Each returns 999, which both
/// libraries call "unknown error": nothing that is loaded by mistake can look
/// as if it worked.
pub fn stub_source(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("int {name}(void) {{ return 999; }}\n")).collect()
}

/// The text with a blank in place of each comment; line ends behind `//` stay.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(slash) = rest.find('/') {
        let end = match rest.as_bytes().get(slash + 1) {
            Some(b'*') => rest[slash + 2..].find("*/").map(|found| slash + 2 + found + 2),
            Some(b'/') => rest[slash..].find('\n').map(|found| slash + found),
            _ => {
                plain.push_str(&rest[..=slash]);
                rest = &rest[slash + 1..];
                continue;
            }
        };
        plain.push_str(&rest[..slash]);
        plain.push(' ');
        rest = end.map_or("", |end| &rest[end..]);
    }
    plain.push_str(rest);
    plain
}

/// Names of functions that are followed by a parenthesis, and before which, in
/// the same declaration, the right words stand; the nearest comes first.
fn declared(
    text: &str,
    prefix: &str,
    is_declaration: impl Fn(&[&str]) -> bool,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in declarations(text) {
        // Not only the first parenthesis: `DEPRECATED(13.0) nvmlReturn_t ...`.
        for (end, _) in line.match_indices('(') {
            let head = line[..end].trim_end();
            let mut words =
                head.rsplit(|letter: char| !is_word(letter)).filter(|word| !word.is_empty());
            let name = words.next().filter(|name| head.ends_with(name)).unwrap_or_default();
            let before: Vec<&str> = words.take(3).collect();
            if is_function(name, prefix) && is_declaration(&before) {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// The text cut at what ends a declaration, preprocessor lines left out.
fn declarations(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .map(|line| if line.trim_start().starts_with('#') { ";" } else { line })
        .flat_map(|line| [line, "\n"])
        .collect();
    code.split([';', '{', '}']).map(str::to_owned).collect()
}

/// The macros without arguments: name and replacement.
fn macros(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| {
            let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
            let (name, target) = rest.trim_start().split_once(char::is_whitespace)?;
            Some((name, target.trim()))
        })
        .collect()
}

/// Whether a word is a function's name: the prefix, a capital, nothing odd.
fn is_function(word: &str, prefix: &str) -> bool {
    word.strip_prefix(prefix).is_some_and(|rest| {
        rest.starts_with(|letter: char| letter.is_ascii_uppercase()) && rest.chars().all(is_word)
    })
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &BTreeSet<String>) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }

    #[test]
    fn cuda_names() {
        let header = "\
/* CUresult CUDAAPI cuInAComment(void); */
#define cuMemAlloc cuMemAlloc_v2
#define cuNothing cuNowhere
#define cuMemcpy __CUDA_API_PTDS(cuMemcpy)
#  define cuLaunch   __CUDA_API_PTSZ( cuLaunchKernel )
#define CU_FLAG 1
typedef CUresult (CUDAAPI *cuCallback)(int);
CUresult CUDAAPI cuInit(unsigned int Flags);
__CUDA_DEPRECATED CUresult CUDAAPI
cuMemAlloc(CUdeviceptr *dptr,
           size_t bytesize); // CUresult CUDAAPI cuInALineComment(void);
#if defined(OLD)
CUresult CUDAAPI cuOld(void);
#endif
static inline int cuHelper(int x) { return cuInit(x); }
";
        assert_eq!(
            list(&cuda(header)),
            [
                "cuInit",
                "cuLaunchKernel",
                "cuLaunchKernel_ptsz",
                "cuMemAlloc",
                "cuMemAlloc_v2",
                "cuMemcpy",
                "cuMemcpy_ptds",
                "cuOld",
            ]
        );
    }

    #[test]
    fn nvml_names() {
        let header = "\
#define nvmlInit nvmlInit_v2
#define nvmlDeviceGetX nvmlDeviceGetX_v3
nvmlReturn_t DECLDIR nvmlInit_v2(void);
const DECLDIR char* nvmlErrorString(nvmlReturn_t result);
DEPRECATED(13.0) nvmlReturn_t nvmlDeviceGetX_v3(int device);
typedef struct nvmlDevice_st { int x; } nvmlDevice_t;
";
        assert_eq!(
            list(&nvml(header)),
            ["nvmlDeviceGetX", "nvmlDeviceGetX_v3", "nvmlErrorString", "nvmlInit", "nvmlInit_v2"]
        );
    }

    #[test]
    fn our_own_headers_give_the_names_of_the_hooks() {
        let text = super::super::embedded::TOOLKIT
            .iter()
            .filter(|(name, _)| name.ends_with(".h") && !name.contains("nvml"))
            .map(|(_, content)| String::from_utf8_lossy(content).into_owned())
            .collect::<String>();
        let names = cuda(&text);
        for name in ["cuMemAllocManaged", "cuMemAlloc_v2", "cuMemFreeHost", "cuInit"] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn a_stub_has_a_function_for_each_name() {
        let names = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        assert_eq!(
            stub_source(&names),
            "int a(void) { return 999; }\nint b(void) { return 999; }\n"
        );
    }
}
