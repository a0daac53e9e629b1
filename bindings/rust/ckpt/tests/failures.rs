//! Callbacks that fail or panic: an error, the host lives, the next step is right.
mod common;
use ckpt::{closures, Arena, ArenaOptions, Device, Error, Output, Root, SegmentBuilder, Shared, Strategy, Tape, TapeOptions, PANICKED};
use common::*;
use std::error::Error as _;

#[test]
fn in_forward_recompute_and_backward() {
    quiet_panics();
    for how in [How::Error, How::Panic] {
        for place in [Place::Forward, Place::Recompute, Place::Backward] {
            let net = Net::new(5, Strategy::EverySegment, 0);
            net.plan().unwrap();
            let expected = net.step().unwrap();
            net.tape.set_step(0).unwrap();
            fail_next(place, how);
            let error = net.step().unwrap_err();
            match how {
                How::Error => {
                    assert_eq!(error.status(), 42, "{:?}", place);
                    assert_eq!(error.name(), "USER");
                    assert!(error.text().contains("told to fail"), "{}", error);
                }
                How::Panic => {
                    assert_eq!(error.status(), PANICKED);
                    assert!(error.text().contains("told to panic"), "{}", error);
                    let payload = error.into_panic().unwrap();
                    assert_eq!(*payload.downcast::<&str>().unwrap(), "told to panic");
                }
            }
            assert_eq!(net.arena.stats().unwrap().in_use_bytes, 0);
            assert_eq!(net.tape.step().unwrap(), 0, "a failed step does not move on");
            net.x.set(0, net.x.get(0)); // inputs are let go
            assert_eq!(net.step().unwrap(), expected, "{:?} {:?}", place, how);
        }
    }
}

/// Any error comes back as the source.
#[test]
fn causes_are_carried() {
    let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = Tape::new(&arena, &TapeOptions::default()).unwrap();
    let (def, code) = closures(
        SegmentBuilder::new("reads a file").input(0).output(Output::new("out", 4)),
        |_| {
            std::fs::read("/no/such/file").map_err(Error::other)?;
            Ok(())
        },
        |_| Ok(()),
    )
    .unwrap();
    let x = Shared::from(vec![1.0f32]);
    let input = tape.input(&x, None).unwrap();
    let error = tape.run(&def, &code, &[input]).unwrap_err();
    assert!(error.source().unwrap().downcast_ref::<std::io::Error>().is_some());
    assert!(error.text().contains("No such file"), "{}", error);
}

#[test]
fn the_tape_is_busy_inside_a_callback() {
    use std::{cell::RefCell, rc::Rc};
    let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = Rc::new(Tape::new(&arena, &TapeOptions::default()).unwrap());
    let (inner, said) = (tape.clone(), Rc::new(RefCell::new(String::new())));
    let out = said.clone();
    let (def, code) = closures(
        SegmentBuilder::new("reenters").input(0).output(Output::new("out", 4)),
        move |f| {
            *out.borrow_mut() = inner.reset().unwrap_err().name().to_string();
            f.output_mut::<f32>(0)?[0] = 1.0;
            Ok(())
        },
        |f| {
            if let Some(grad) = f.input_grad::<f32>(0)? {
                grad.values[0] = 3.0;
            }
            Ok(())
        },
    )
    .unwrap();
    let (x, grad) = (Shared::from(vec![1.0f32]), Shared::from(vec![0.0f32]));
    let input = tape.input(&x, Some(&grad)).unwrap();
    let y = tape.run_one(&def, &code, &[input]).unwrap();
    assert_eq!(*said.borrow(), "BUSY");
    tape.backward(&[Root::new(y, &[1.0f32])]).unwrap();
    assert_eq!(grad.get(0), 3.0);
}

/// A recording owns what it uses, and gives it back once, whatever happened.
#[test]
fn users_are_released_once() {
    let before = DROPPED.with(|dropped| dropped.get());
    {
        let net = Net::new(3, Strategy::Full, 0);
        net.record(false).unwrap();
        fail_next(Place::Forward, How::Error);
        net.tape.reset().unwrap();
        net.record(false).unwrap_err();
        let stale = {
            let y = net.record(false).unwrap();
            net.tape.reset().unwrap();
            y
        };
        assert_eq!(net.tape.run(&net.def, &net.layers[0], &[stale]).unwrap_err().name(), "STALE");
        let x = net.tape.input(&net.x, None).unwrap();
        net.tape.run(&net.def, &net.layers[0], &[x, x]).unwrap_err();
        net.record(false).unwrap();
    }
    assert_eq!(DROPPED.with(|dropped| dropped.get()), before + 3);
}

/// As other crates' errors want them.
#[test]
fn errors_are_send_and_sync() {
    fn needs<T: Send + Sync + std::error::Error + 'static>() {}
    needs::<Error>();
    let boxed: Box<dyn std::error::Error + Send + Sync> = Error::user(3, "a text").into();
    assert_eq!(boxed.to_string(), "a text (USER 3)");
    assert_eq!(Error::user(-3, "not a callback's").status(), ckpt::FAILED);
}
