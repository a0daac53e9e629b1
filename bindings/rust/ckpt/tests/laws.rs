//! The library's laws, through the binding.
mod common;
use ckpt::{sys, Philox, Root, Shared, Strategy, TapeOptions};
use common::*;

fn strategies() -> Vec<Strategy> {
    vec![
        Strategy::StoreAll,
        Strategy::EverySegment,
        Strategy::Sqrt,
        Strategy::Uniform(3),
        Strategy::Block(2),
        Strategy::Full,
        Strategy::Auto,
    ]
}

/// Laws 1 and 2: the same bits, and what was predicted.
#[test]
fn gradients_do_not_depend_on_the_strategy() {
    let stored = Net::new(8, Strategy::StoreAll, 0);
    stored.plan().unwrap();
    let expected: Vec<Outcome> = (0..3).map(|_| stored.step().unwrap()).collect();
    assert_ne!(expected[0], expected[1], "noise differs from step to step");
    for strategy in strategies() {
        let net = Net::new(8, strategy, 0);
        net.plan().unwrap();
        for expected in &expected {
            assert_eq!(&net.step().unwrap(), expected, "{}", strategy);
            let stats = net.tape.stats().unwrap();
            assert_eq!(stats.peak_predicted_bytes, stats.peak_measured_bytes, "{}", strategy);
            assert_eq!(stats.arena_predicted_bytes, stats.arena_measured_bytes, "{}", strategy);
            assert_eq!(stats.planned, 1);
        }
        assert_eq!(net.arena.stats().unwrap().in_use_bytes, 0);
    }
}

/// Laws 1 to 5 over budgets.
#[test]
fn a_budget_is_kept_or_refused_with_the_smallest() {
    let stored = Net::new(8, Strategy::StoreAll, 0);
    stored.plan().unwrap();
    let expected = stored.step().unwrap();
    let all = stored.tape.stats().unwrap().arena_measured_bytes;

    let refused = Net::new(8, Strategy::Auto, 1024);
    let error = refused.plan().unwrap_err();
    let minimum = refused.tape.stats().unwrap().minimum_budget_bytes;
    assert_eq!(error.status(), sys::CKPT_ERROR_BUDGET);
    assert_eq!(error.name(), "BUDGET");
    assert!(error.text().contains(&minimum.to_string()), "{} has no {}", error.text(), minimum);
    assert!(Net::new(8, Strategy::Auto, minimum - 1).plan().is_err());

    let mut peak_before = usize::MAX;
    for budget in [10 * all, all, all * 3 / 4, all / 2, minimum] {
        let net = Net::new(8, Strategy::Auto, budget.max(minimum));
        net.plan().unwrap();
        assert_eq!(net.step().unwrap(), expected, "budget {}", budget);
        let stats = net.tape.stats().unwrap();
        assert!(stats.arena_measured_bytes <= budget.max(minimum));
        assert!(stats.peak_predicted_bytes <= peak_before);
        peak_before = stats.peak_predicted_bytes;
        if budget >= all {
            assert_eq!(stats.recompute_count, 0);
        }
    }
}

#[test]
fn an_unknown_first_step_runs_too() {
    let known = Net::new(5, Strategy::Auto, 0);
    known.plan().unwrap();
    let unknown = Net::new(5, Strategy::Auto, 0);
    assert_eq!(unknown.step().unwrap(), known.step().unwrap());
}

#[test]
fn retain_detach_and_pipelines() {
    let net = Net::new(4, Strategy::Sqrt, 0);
    net.plan().unwrap();
    let expected = net.step().unwrap();
    net.tape.set_step(0).unwrap();
    let y = net.record(false).unwrap();
    let grad = [1.0f32; COUNT];
    net.tape.backward_retain(&[Root::new(y, &grad)]).unwrap();
    assert_eq!(bits(&net.x_grad.to_vec()), expected.x_grad);
    net.x_grad.fill(0.0);
    net.tape.backward(&[Root::new(y, &grad)]).unwrap();
    assert_eq!(bits(&net.x_grad.to_vec()), expected.x_grad);

    let piped = Net::with(4, TapeOptions { strategy: Strategy::Sqrt, in_flight_count: 2, seed: 5, ..Default::default() });
    piped.plan().unwrap();
    let first_y = piped.record(false).unwrap();
    let first = piped.tape.detach().unwrap();
    let second_y = piped.record(false).unwrap();
    let second = piped.tape.detach().unwrap();
    assert_eq!(bits(&first.read::<f32>(first_y).unwrap()), expected.out);
    second.backward(&[Root::new(second_y, &grad)]).unwrap();
    first.backward(&[Root::new(first_y, &grad)]).unwrap();
    assert_eq!(bits(&piped.x_grad.to_vec()), expected.x_grad);
    drop((first, second));
    assert_eq!(piped.arena.stats().unwrap().in_use_bytes, 0);
}

#[test]
fn plans_of_a_tape() {
    let net = Net::new(6, Strategy::Sqrt, 0);
    net.plan().unwrap();
    net.step().unwrap();
    let chain = net.tape.chain(KEY).unwrap();
    assert_eq!(chain.segment_count(), 6);
    let plan = net.tape.plan(KEY).unwrap();
    let other = Net::new(6, Strategy::StoreAll, 0);
    other.plan().unwrap();
    assert_ne!(other.tape.plan(KEY).unwrap().hash(), plan.hash());
    other.tape.adopt(KEY, &plan).unwrap();
    other.tape.prepare(KEY).unwrap();
    assert_eq!(other.tape.plan(KEY).unwrap().hash(), plan.hash());
    other.tape.set_step(1).unwrap();
    assert_eq!(other.step().unwrap(), net.step().unwrap());
    assert!(other.tape.stats().unwrap().recompute_count > 0);
}

/// Destroyed parents with live children, in any order.
#[test]
fn parents_may_go_first() {
    let net = Net::new(3, Strategy::Sqrt, 0);
    net.plan().unwrap();
    let expected = net.step().unwrap();
    net.tape.set_step(0).unwrap();
    let y = net.record(false).unwrap();
    let recording = net.tape.detach().unwrap();
    let Net { arena, tape, def, layers, x, x_grad } = net;
    drop((arena, tape, def, layers, x));
    x_grad.fill(0.0);
    recording.backward(&[Root::new(y, &[1.0f32; COUNT])]).unwrap();
    assert_eq!(bits(&x_grad.to_vec()), expected.x_grad);
}

#[test]
fn inline_segments_watches_and_state() {
    let net = Net::new(1, Strategy::StoreAll, 0);
    let weights = Shared::from(vec![1.0f32, 2.0]);
    let x = net.tape.input(&net.x, Some(&net.x_grad)).unwrap();
    let inputs = [x];
    let open = net.tape.call(&net.def, &net.layers[0], &inputs).watch("weights", &weights).begin().unwrap();
    assert!(!open.frame().is_recompute() && !open.frame().is_dry() && open.frame().index() == 0);
    ckpt::Segment::forward(&*net.layers[0], open.frame()).unwrap();
    assert!(net.tape.reset().is_err(), "a segment is open");
    let y = open.end().unwrap()[0];
    net.tape.backward(&[Root::new(y, &[1.0f32; COUNT])]).unwrap();
    let inline = bits(&net.x_grad.to_vec());
    net.tape.set_step(0).unwrap();
    assert_eq!(net.step().unwrap().x_grad, inline);

    // Dropped without an end: abandoned.
    let x = net.tape.input(&net.x, None).unwrap();
    drop(net.tape.begin_segment(&net.def, &net.layers[0], &[x]).unwrap());
    net.x.set(0, net.x.get(0)); // let go
    assert_eq!(net.arena.stats().unwrap().in_use_bytes, 0);
}

#[test]
fn traces() {
    use std::{cell::RefCell, rc::Rc};
    let net = Net::new(4, Strategy::Sqrt, 0);
    net.plan().unwrap();
    let events = Rc::new(RefCell::new(Vec::new()));
    let sink = events.clone();
    net.tape.set_trace(Some(Box::new(move |event| sink.borrow_mut().push(event)))).unwrap();
    net.step().unwrap();
    let peak = events.borrow().iter().map(|event| event.in_use_bytes).max().unwrap();
    assert_eq!(peak, net.tape.stats().unwrap().peak_measured_bytes);
    assert!(events.borrow().iter().any(|event| event.is_recompute));

    quiet_panics();
    net.tape.set_trace(Some(Box::new(|_| panic!("told to panic")))).unwrap();
    assert!(net.step().unwrap_err().text().contains("told to panic"));
    let trace = Rc::new(ckpt::Trace::new(1000).unwrap());
    net.tape.reset().unwrap();
    net.tape.attach_trace(&trace).unwrap();
    net.step().unwrap();
    net.tape.set_trace(None).unwrap();
    let text = trace.to_json(Some(&net.tape.chain(KEY).unwrap())).unwrap();
    assert!(text.contains("traceEvents") && text.contains("layer"), "{}", text);
    trace.clear().unwrap();
    assert!(trace.to_json(None).unwrap().len() < text.len());
}

/// The same numbers as a fill by hand from the packed snapshot.
#[test]
fn random_numbers_are_those_of_the_packing() {
    use ckpt::{closures, Output, SegmentBuilder};
    let net = Net::new(1, Strategy::Full, 0);
    let seen = std::rc::Rc::new(std::cell::Cell::new(None));
    let sink = seen.clone();
    let (def, code) = closures(
        SegmentBuilder::new("draw").input(0).output(Output::new("out", 4)).no_backward(),
        move |f| {
            sink.set(Some(f.random(9)));
            f.output_mut::<f32>(0)?;
            Ok(())
        },
        |_| Ok(()),
    )
    .unwrap();
    net.tape.set_step(11).unwrap();
    let x = net.tape.input(&net.x, None).unwrap();
    net.tape.run(&def, &code, &[x]).unwrap();
    net.tape.reset().unwrap();
    assert_eq!(seen.get(), Some(Philox::pack(5, 11, 0, 9).unwrap()));
}
