//! Against C: layouts of structs, and that each function of the headers is there and is used.
mod common;
use std::collections::BTreeSet;
use std::process::Command;

/// The program that bindings/generate.py writes: built here where nobody has (CKPT_LAYOUTS names it).
fn layouts_of_c() -> Option<String> {
    let program = match std::env::var("CKPT_LAYOUTS") {
        Ok(given) => given,
        Err(_) => {
            let root = common::repository();
            let out = std::env::temp_dir().join(format!("ckpt-layouts-{}", std::process::id()));
            let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
            let built = Command::new(compiler)
                .arg("-std=c99")
                .arg("-I")
                .arg(root.join("include"))
                .arg(root.join("bindings/layouts/layouts.c"))
                .arg("-o")
                .arg(&out)
                .status();
            if !built.ok()?.success() {
                return None;
            }
            out.display().to_string()
        }
    };
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn layouts_are_those_of_c() {
    let c = match layouts_of_c() {
        Some(text) => text,
        None => return eprintln!("left out: no C compiler, and no CKPT_LAYOUTS"),
    };
    let here = ckpt::sys::layouts();
    for (c, here) in c.lines().zip(here.lines()) {
        assert_eq!(c, here);
    }
    assert_eq!(c.lines().count(), here.lines().count());
}

/// Names of the functions that the public headers declare.
fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(common::repository().join("include/ckpt")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for part in text.split("\nCKPT_API ").skip(1) {
            let declaration = part.split('(').next().unwrap();
            let name = declaration.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
            names.insert(name.to_string());
        }
    }
    assert!(names.len() > 150 && names.iter().all(|name| name.starts_with("ckpt_")), "{:?}", names);
    names
}

#[test]
fn each_function_is_there() {
    let here: BTreeSet<String> = ckpt::sys::functions()
        .iter()
        .map(|(name, address)| {
            assert!(!address.is_null());
            name.to_string()
        })
        .collect();
    assert_eq!(declared(), here);
}

/// Functions that the safe layer has no use for, and why.
const RAW_ALONE: &[(&str, &str)] = &[
    ("ckpt_frame_user", "the frame belongs to the user's object already"),
    ("ckpt_device_interface", "between a plugin and its companion library"),
];

#[test]
fn the_safe_layer_uses_each_function() {
    fn read(folder: &std::path::Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, all);
            } else {
                all.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut source = String::new();
    read(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut source);
    let words: BTreeSet<&str> = source.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let missing: Vec<String> = declared().into_iter().filter(|name| !words.contains(name.as_str())).collect();
    let expected: Vec<String> = RAW_ALONE.iter().map(|(name, _)| name.to_string()).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(missing, expected);
}

#[test]
fn versions_agree() {
    let ours = (
        ckpt::sys::CKPT_VERSION_MAJOR * 1000000 + ckpt::sys::CKPT_VERSION_MINOR * 1000 + ckpt::sys::CKPT_VERSION_PATCH,
        env!("CARGO_PKG_VERSION"),
    );
    assert_eq!((ckpt::version_number(), ckpt::version()), ours);
}
