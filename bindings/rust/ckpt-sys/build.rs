//! Where the libraries are: in CKPT_LIB_DIR, else where pkg-config says.
use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=CKPT_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rerun-if-changed=build.rs");
    let ops = env::var_os("CARGO_FEATURE_OPS").is_some();
    let libraries: &[&str] = if ops { &["ckpt", "ckpt_ops"] } else { &["ckpt"] };
    let folders = match env::var("CKPT_LIB_DIR") {
        Ok(given) => from_folders(&given, libraries),
        Err(_) => from_pkg_config(libraries),
    };
    for folder in &folders {
        println!("cargo:rustc-link-search=native={}", folder);
    }
    for library in libraries {
        println!("cargo:rustc-link-lib=dylib={}", library);
    }
    println!("cargo:lib_dirs={}", folders.join(":"));
}

/// CKPT_LIB_DIR: one folder, or several with ':' between them.
fn from_folders(given: &str, libraries: &[&str]) -> Vec<String> {
    let folders: Vec<String> = given.split(':').filter(|folder| !folder.is_empty()).map(String::from).collect();
    for library in libraries {
        let names = [format!("lib{}.so", library), format!("lib{}.dylib", library)];
        let found = folders.iter().any(|folder| names.iter().any(|name| Path::new(folder).join(name).exists()));
        if !found {
            panic!("CKPT_LIB_DIR is '{}': no {} in it", given, names[0]);
        }
    }
    folders
}

fn from_pkg_config(libraries: &[&str]) -> Vec<String> {
    let command = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let output = Command::new(&command).arg("--libs-only-L").arg("--print-errors").args(libraries).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => panic!("{}: {}; set CKPT_LIB_DIR to the folder of lib{}.so", command, error, libraries[0]),
    };
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_string();
        panic!(
            "{} does not know {}: {}; set PKG_CONFIG_PATH, or CKPT_LIB_DIR to the folder of lib{}.so",
            command,
            libraries.join(", "),
            text,
            libraries[0]
        );
    }
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    text.split_whitespace().filter_map(|word| word.strip_prefix("-L")).map(String::from).collect()
}
