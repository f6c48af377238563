//! Lets the linker fold functions of the same code in what is packaged: decision 70.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    // The linker that Rust brings for this target can do it; others may not.
    if is("OPT_LEVEL", "z") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
