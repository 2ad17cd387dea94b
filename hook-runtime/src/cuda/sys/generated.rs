// The bindings that `ucx-configure --bindings=generate` has made from the headers found.
include!(env!("HOOK_RUNTIME_BINDINGS"));
