//! Tests and examples of this package find the libraries where they were found when it was built.
use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for folder in env::var("DEP_CKPT_LIB_DIRS").unwrap_or_default().split(':').filter(|folder| !folder.is_empty()) {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder);
    }
}
