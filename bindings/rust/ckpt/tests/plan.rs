//! Chains, plans, schedules, packing and estimates.
mod common;
use ckpt::{
    estimate_chain, estimate_rank, pack, pack_lowest, sys, verify, Chain, ChainInput, ChainOptions, ChainSegment, LayoutDesc, ModelDesc,
    Output, PackBuffer, PackOptions, Plan, PlanOptions, Schedule, Slot, Strategy,
};

fn chain(segments: usize) -> Chain {
    let segment = |k: usize| ChainSegment {
        name: format!("block{}", k),
        forward_seconds: 1.0,
        backward_seconds: 2.0,
        slots: vec![Slot::new("wide", 16384).cost_seconds(0.9).reads(&[]), Slot::new("cheap", 4096).cost_seconds(0.05).reads(&[0])],
        outputs: vec![Output::new("out", 4096).reads(&[1])],
        ..Default::default()
    };
    let input = ChainInput { bytes: 4096, ..Default::default() };
    Chain::new(&ChainOptions { inputs: vec![input], segments: (0..segments).map(segment).collect(), ..Default::default() }).unwrap()
}

#[test]
fn a_plan_and_its_program() {
    let chain = chain(6);
    let all = Plan::new(&chain, &PlanOptions::default()).unwrap().summary().unwrap();
    assert_eq!(all.recompute_seconds, 0.0);
    let options = PlanOptions { budget_bytes: all.arena_bytes * 3 / 5, ..Default::default() };
    let plan = Plan::new(&chain, &options).unwrap();
    let summary = plan.summary().unwrap();
    assert!(summary.arena_bytes <= options.budget_bytes && summary.recompute_seconds > 0.0);
    assert_eq!(ckpt::class_name(summary.plan_class), "sigma+s+w");
    let actions = plan.actions().unwrap();
    assert_eq!(actions.len() as u32, summary.action_count);
    let found = verify(&chain, &actions).unwrap();
    assert_eq!(found.peak_bytes, summary.peak_bytes);
    assert!((found.recompute_seconds - summary.recompute_seconds).abs() < 1e-9);
    assert_eq!(Plan::from_actions(&chain, &actions, 1, 0).unwrap().hash(), plan.hash());
    assert_eq!(verify(&chain, &actions[1..]).unwrap_err().name(), "INVALID_PLAN");

    let placements = plan.placements().unwrap();
    assert_eq!(placements.iter().map(|placed| placed.offset + placed.bytes).max(), Some(summary.arena_bytes));
    for (k, a) in placements.iter().enumerate() {
        for b in &placements[..k] {
            let together = a.first_action < b.end_action && b.first_action < a.end_action;
            assert!(!together || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset, "{:?} {:?}", a, b);
        }
    }
    let explained = plan.explain(&chain).unwrap();
    assert_eq!(explained.len(), 6 * 3 + 1);
    assert!(explained.iter().any(|item| item.kept == 0 && item.because == sys::CKPT_BECAUSE_BUDGET));
}

#[test]
fn texts() {
    let chain = chain(4);
    let again = Chain::from_json(&chain.to_json().unwrap(), 0, "chain.json").unwrap();
    assert_eq!((again.hash(), again.segment_count()), (chain.hash(), 4));
    let plan = Plan::new(&chain, &PlanOptions { strategy: Strategy::Sqrt, ..Default::default() }).unwrap();
    assert_eq!(Plan::from_json(&plan.to_json().unwrap(), "plan.json", &chain).unwrap().hash(), plan.hash());
    assert!(plan.to_schedule_json().unwrap().contains("Reverse"));
    assert!(plan.to_trace_json().unwrap().contains("traceEvents"));
    assert!(Schedule::revolve(10, 3).unwrap().into_json().unwrap().contains("EndReverse"));
    let error = Chain::from_json("{\"input\": {\"bytes\": -1}, \"segments\": [{\"name\": \"a\", \"forward_seconds\": 1, \"backward_seconds\": 1, \"output_bytes\": 1, \"saved_bytes\": 1}]}", 0, "chain.json").unwrap_err();
    assert!(error.text().contains("chain.json") && error.text().contains("-1"), "{}", error);
    assert!(Plan::from_json("[]", "plan.json", &chain).is_err());
}

#[test]
fn budgets_patterns_and_curves() {
    let chain = chain(6);
    let options = PlanOptions::default();
    let minimum = Plan::minimum_budget(&chain, &options).unwrap();
    let with = |budget_bytes| Plan::new(&chain, &PlanOptions { budget_bytes, ..Default::default() });
    assert!(with(minimum).is_ok());
    let error = with(minimum - 1).unwrap_err();
    assert!(error.name() == "BUDGET" && error.text().contains(&minimum.to_string()), "{}", error);
    let curve = Plan::curve(&chain, &options, 16).unwrap();
    assert!(curve.len() > 2 && curve[0].budget_bytes == minimum);
    assert!(curve.windows(2).all(|pair| pair[0].budget_bytes < pair[1].budget_bytes && pair[0].seconds > pair[1].seconds));

    let selective = |keep: &[&str], recompute: &[&str]| {
        let texts = |patterns: &[&str]| patterns.iter().map(|text| text.to_string()).collect();
        Plan::new(
            &chain,
            &PlanOptions {
                strategy: Strategy::Selective,
                keep_patterns: texts(keep),
                recompute_patterns: texts(recompute),
                ..Default::default()
            },
        )
    };
    assert!(selective(&["wide"], &[]).unwrap().summary().unwrap().recompute_seconds > 0.0);
    assert_eq!(selective(&["narrow"], &[]).unwrap_err().name(), "NOT_FOUND");
    assert_eq!(selective(&["wide"], &["block*/wide"]).unwrap_err().name(), "CONFLICT");
}

/// Plans are shared between threads.
#[test]
fn chains_and_plans_are_send_and_sync() {
    let chain = std::sync::Arc::new(chain(3));
    let hashes: Vec<_> = (0..2)
        .map(|_| {
            let chain = chain.clone();
            std::thread::spawn(move || Plan::new(&chain, &PlanOptions::default()).unwrap())
        })
        .map(|thread| thread.join().unwrap().hash())
        .collect();
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn packing() {
    let buffers = [(0, 2, 100), (1, 3, 50), (2, 4, 100), (0, 4, 10)].map(|(lower, upper, bytes)| PackBuffer { lower, upper, bytes });
    let packed = pack_lowest(&buffers).unwrap();
    assert_eq!((packed.result.height_bytes, packed.result.proved), (160, 1));
    assert_eq!(packed.result.lower_bound_bytes, 160);
    let refused = pack(&buffers, &PackOptions { capacity_bytes: 159, ..Default::default() }).unwrap_err();
    assert_eq!(refused.error.name(), "BUDGET");
    assert!(refused.best.unwrap().result.height_bytes >= 160);
    let wrong = [PackBuffer { lower: 2, upper: 2, bytes: 1 }];
    assert!(pack_lowest(&wrong).unwrap_err().text().contains("upper"));
    assert!(pack_lowest(&[]).unwrap().offsets.is_empty());
}

/// Korthikanti et al.: s b h (34 + 5 a s / h) bytes for a layer of half precision with dropout.
#[test]
fn estimates() {
    let model = ModelDesc {
        flags: sys::CKPT_MODEL_DROPOUT,
        layers: 4,
        hidden: 1024,
        heads: 16,
        sequence: 512,
        micro_batch: 2,
        ..Default::default()
    };
    let layout = LayoutDesc::default();
    let estimate = estimate_rank(&model, &layout, None, sys::CKPT_RECOMPUTE_NONE, 0, 0).unwrap();
    assert_eq!(estimate.layer_bytes, 512 * 2 * 1024 * 34 + 5 * 16 * 512 * 512 * 2);
    let refused = estimate_rank(&model, &layout, None, sys::CKPT_RECOMPUTE_OPTIMAL, 0, 1).unwrap_err();
    assert_eq!(refused.error.name(), "BUDGET");
    assert!(refused.minimum_budget_bytes > 0);
    assert_eq!(estimate_chain(&model, &layout, None, 0, 0, 0).unwrap().segment_count(), 5);
    assert_eq!(ckpt::recompute_name(sys::CKPT_RECOMPUTE_FULL), "full");
}

#[test]
fn stateful_generators() {
    let mut rng = ckpt::Rng::new(1, 2, 3).unwrap();
    rng.advance(5, true).unwrap();
    assert_eq!(rng.snapshot().unwrap(), ckpt::Philox::new(1, 2, 3 + 8));
    rng.restore(&ckpt::Philox::new(9, 9, 4)).unwrap();
    assert_eq!(rng.snapshot().unwrap().offset, 4);
}

/// Streams, pinned memory, captures: what the CPU has of them.
#[test]
fn devices() {
    let cpu = ckpt::Device::cpu().unwrap();
    assert_eq!(cpu.info().unwrap().kind, sys::CKPT_DEVICE_KIND_CPU);
    assert!(!cpu.name().unwrap().is_empty());
    let stream = cpu.stream().unwrap();
    let mut memory = cpu.host_memory::<u32>(8).unwrap();
    memory.as_mut_slice().copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let mut copy = [0u32; 8];
    unsafe {
        stream.copy(copy.as_mut_ptr() as *mut _, memory.as_slice().as_ptr() as *const _, 32, ckpt::Copy::HostToDevice).unwrap();
        stream.fill(memory.as_mut_slice().as_mut_ptr() as *mut _, 0, 32).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!((copy[7], memory.as_slice()[7]), (8, 0));
    let philox = ckpt::Philox::new(1, 2, 3);
    let (mut a, mut b) = ([0u32; 8], [0u32; 8]);
    philox.fill_u32(5, &mut a).unwrap();
    unsafe { stream.philox_u32(&philox, 5, 8, b.as_mut_ptr()).unwrap() };
    assert_eq!(a, b);
    assert_eq!(stream.begin_capture().unwrap_err().name(), "UNSUPPORTED");
    assert!(stream.end_capture().is_err());
}

#[test]
fn allocators_of_ones_own() {
    use std::alloc::{alloc, dealloc, Layout};
    use std::{cell::Cell, rc::Rc};
    struct Counting(Rc<Cell<(i32, i32)>>);
    unsafe impl ckpt::Allocator for Counting {
        fn alloc(&self, bytes: usize, alignment: usize) -> *mut u8 {
            self.0.set((self.0.get().0 + 1, self.0.get().1));
            unsafe { alloc(Layout::from_size_align(bytes, alignment).unwrap()) }
        }
        unsafe fn free(&self, data: *mut u8, bytes: usize) {
            dealloc(data, Layout::from_size_align(bytes, 256).unwrap())
        }
    }
    impl Drop for Counting {
        fn drop(&mut self) {
            self.0.set((self.0.get().0, self.0.get().1 + 1));
        }
    }
    let counts = Rc::new(Cell::new((0, 0)));
    let cpu = ckpt::Device::cpu().unwrap();
    let arena = ckpt::Arena::new(&cpu, ckpt::ArenaOptions::new().capacity(1 << 16).allocator(Counting(counts.clone()))).unwrap();
    drop(arena.alloc(100).unwrap());
    drop(arena.alloc_high(100).unwrap());
    assert_eq!(counts.get(), (1, 0));
    arena.reset_stats().unwrap();
    drop(arena);
    assert_eq!(counts.get(), (1, 1));
    // A desc that is refused is not taken: released here, once.
    assert!(ckpt::Arena::new(&cpu, ckpt::ArenaOptions::new().alignment(3).allocator(Counting(counts.clone()))).is_err());
    assert_eq!(counts.get(), (1, 2));
}
