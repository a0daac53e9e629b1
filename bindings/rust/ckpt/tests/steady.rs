//! By itself: other tests of a process would move its memory.
mod common;
use ckpt::Strategy;
use common::*;

/// Law 7: steps, forward-only steps, abandoned recordings and failures, without growth.
#[test]
fn two_thousand_steps_do_not_grow() {
    quiet_panics();
    let net = Net::new(6, Strategy::Sqrt, 0);
    net.plan().unwrap();
    let expected = net.step().unwrap();
    let arena = net.arena.stats().unwrap();
    let dropped = DROPPED.with(|dropped| dropped.get());
    let mut resident = 0;
    for step in 1..2000u64 {
        match step % 7 {
            3 => {
                fail_next(
                    [Place::Forward, Place::Recompute, Place::Backward][step as usize / 7 % 3],
                    [How::Error, How::Panic][step as usize % 2],
                );
                assert!(net.step().is_err(), "step {}", step);
            }
            5 => {
                net.record(false).unwrap();
                net.tape.reset().unwrap();
            }
            6 => {
                net.tape.begin_no_backward(KEY).unwrap();
                net.record(false).unwrap();
                net.tape.reset().unwrap();
            }
            _ => {
                net.tape.set_step(0).unwrap();
                assert_eq!(net.step().unwrap(), expected, "step {}", step);
            }
        }
        assert_eq!(net.arena.stats().unwrap().in_use_bytes, 0, "step {}", step);
        if step == 200 {
            resident = resident_bytes();
        }
    }
    let now = net.arena.stats().unwrap();
    assert_eq!(now.height_bytes, arena.height_bytes);
    assert_eq!(DROPPED.with(|dropped| dropped.get()), dropped, "a layer was dropped that is still here");
    assert!(resident_bytes() <= resident + (1 << 20), "{} after 200 steps, {} at the end", resident, resident_bytes());
    drop(net);
    assert_eq!(DROPPED.with(|count| count.get()), dropped + 6, "all uses of the layers were released");
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
