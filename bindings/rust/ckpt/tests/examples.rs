//! The examples give the bits of the C programs. CKPT_C_EXAMPLES: a folder with the C programs `minimal_bits` and `train_gpt`.
mod common;
use std::path::{Path, PathBuf};
use std::process::Command;

fn example(name: &str) -> PathBuf {
    // target/debug/deps/examples-... is this test.
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{}: {}", program.display(), error));
    assert!(output.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn bits(text: &str) -> u32 {
    let line = text.lines().find_map(|line| line.strip_prefix("loss bits ")).unwrap_or_else(|| panic!("no 'loss bits' in {}", text));
    u32::from_str_radix(line, 16).unwrap()
}

fn c_program(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("CKPT_C_EXAMPLES")?;
    Some(PathBuf::from(folder).join(name))
}

#[test]
fn minimal() {
    let text = run(&example("minimal"), &[]);
    assert!(text.contains("bitwise equal: yes"));
    match c_program("minimal_bits") {
        Some(program) => assert_eq!(bits(&text), bits(&run(&program, &[]))),
        None => eprintln!("left out: no CKPT_C_EXAMPLES"),
    }
}

#[test]
fn gpt() {
    let text = common::repository().join("LICENSE");
    let text = text.to_str().unwrap();
    let stored = bits(&run(&example("gpt"), &[text]));
    assert_eq!(bits(&run(&example("gpt"), &[text, "400KiB"])), stored);
    let refused = Command::new(example("gpt")).args([text, "100KiB"]).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("BUDGET"));
    if let Some(program) = c_program("train_gpt") {
        let shape = [
            "--layers",
            "2",
            "--heads",
            "2",
            "--channels",
            "32",
            "--sequence",
            "32",
            "--batch",
            "4",
            "--dropout",
            "0.1",
            "--steps",
            "20",
            "--threads",
            "2",
            "--json",
            "--text",
            text,
        ];
        let json = run(&program, &shape);
        let loss = json.split("\"loss\": ").nth(1).unwrap().split(',').next().unwrap();
        assert_eq!((loss.parse::<f64>().unwrap() as f32).to_bits(), stored);
    }
}
