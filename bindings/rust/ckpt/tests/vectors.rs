//! The known answers that all languages check: bindings/vectors/vectors.txt.
mod common;
use ckpt::{revolve_extra_forwards, Chain, Philox, Plan, PlanOptions, Schedule, ScheduleAction, Strategy};
use std::collections::HashMap;

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

fn floats(words: &[&str]) -> Vec<u32> {
    words.iter().map(|word| hex(word) as u32).collect()
}

#[test]
fn known_answers() {
    let text = std::fs::read_to_string(common::repository().join("bindings/vectors/vectors.txt")).unwrap();
    let mut chains = HashMap::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        *counts.entry(words[0].to_string()).or_default() += 1;
        let number = |k: usize| words[k].parse::<u64>().unwrap();
        let word = |k: usize| hex(words[k]);
        match words[0] {
            "revolve" => {
                assert_eq!(revolve_extra_forwards(number(1), number(2)).unwrap(), number(3), "{}", line);
                let advances = |action| match action {
                    Ok(ScheduleAction::Advance { first, last }) => last - first,
                    Ok(_) => 0,
                    Err(error) => panic!("{}", error),
                };
                assert_eq!(Schedule::revolve(number(1), number(2) as u32).unwrap().map(advances).sum::<u64>(), number(3), "{}", line);
            }
            "chain" => {
                chains.insert(words[1], Chain::from_json(words[2], 0, words[1]).unwrap());
            }
            "plan" | "toosmall" => {
                let options =
                    PlanOptions { strategy: words[2].parse::<Strategy>().unwrap(), budget_bytes: number(3) as usize, ..Default::default() };
                let made = Plan::new(&chains[words[1]], &options);
                if words[0] == "plan" {
                    let plan = made.unwrap();
                    let summary = plan.summary().unwrap();
                    assert_eq!(
                        (summary.arena_bytes as u64, summary.peak_bytes as u64, plan.hash()),
                        (number(4), number(5), word(6)),
                        "{}",
                        line
                    );
                } else {
                    assert!(made.unwrap_err().text().contains(words[4]), "{}", line);
                    assert_eq!(Plan::minimum_budget(&chains[words[1]], &options).unwrap() as u64, number(4), "{}", line);
                }
            }
            "block" => {
                let all: Vec<u32> = floats(&words[1..]);
                let got = Philox::block([all[0], all[1], all[2], all[3]], [all[4], all[5]]);
                assert_eq!(got[..], all[6..10], "{}", line);
            }
            "pack" => assert_eq!(
                Philox::pack(word(1), word(2), word(3), word(4) as u32).unwrap(),
                Philox::new(word(1), word(5), word(6)),
                "{}",
                line
            ),
            "refuse" => {
                let error = Philox::pack(word(1), word(2), word(3), word(4) as u32).unwrap_err();
                assert_eq!(error.name(), "OVERFLOW");
                assert!(error.text().contains(words[5]), "{}: {}", line, error);
            }
            "threshold" => assert_eq!(Philox::threshold(f64::from_bits(word(1))), word(2), "{}", line),
            "u32" | "uniform" | "normal" | "bernoulli" => {
                let philox = Philox::new(word(1), word(2), word(3));
                let first = word(4);
                match words[0] {
                    "u32" => {
                        let mut got = vec![0u32; word(5) as usize];
                        philox.fill_u32(first, &mut got).unwrap();
                        assert_eq!(got, floats(&words[6..]), "{}", line);
                    }
                    "uniform" => {
                        let mut got = vec![0f32; word(5) as usize];
                        philox.fill_uniform(first, &mut got).unwrap();
                        assert_eq!(common::bits(&got), floats(&words[6..]), "{}", line);
                    }
                    "normal" => {
                        let (mean, stddev) = (f32::from_bits(word(5) as u32), f32::from_bits(word(6) as u32));
                        let mut got = vec![0f32; word(7) as usize];
                        philox.fill_normal(first, mean, stddev, &mut got).unwrap();
                        assert_eq!(common::bits(&got), floats(&words[8..]), "{}", line);
                    }
                    _ => {
                        let mut got = vec![0u8; word(6) as usize];
                        philox.fill_bernoulli(first, f64::from_bits(word(5)), &mut got).unwrap();
                        assert_eq!(got.iter().map(|&byte| byte as u32).collect::<Vec<_>>(), floats(&words[7..]), "{}", line);
                    }
                }
            }
            other => panic!("unknown vector {}", other),
        }
    }
    for kind in ["revolve", "plan", "toosmall", "block", "pack", "refuse", "threshold", "u32", "uniform", "normal", "bernoulli"] {
        assert!(counts.contains_key(kind), "no {}", kind);
    }
}
