//! What is wrong gets an error that says so; never a crash.
mod common;
use ckpt::{
    closures, parse_bytes, sys, Arena, ArenaOptions, Device, Output, Philox, Root, SegmentBuilder, SegmentDef, Shared, Slot, Strategy,
    TapeOptions,
};
use common::*;

fn said<T>(result: ckpt::Result<T>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

fn has(text: String, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no '{}' in: {}", part, text);
    }
}

#[test]
fn sizes_that_do_not_parse() {
    for text in ["", "12", "0", "-1", "1.5", "12 MiB", "12MB", "MiB", "1e3", "nan", "0x10", ".5GiB", "1..5KiB", "99999999TiB"] {
        let parsed = parse_bytes(text);
        if text == "12" {
            assert_eq!(parsed.unwrap(), 12);
        } else {
            has(said(parsed), &["size is", text, "expected"]);
        }
    }
    assert_eq!(parse_bytes("1.5GiB").unwrap(), 3 << 29);
    assert_eq!(parse_bytes("640KiB").unwrap(), 640 << 10);
}

#[test]
fn names() {
    has(said(Device::open("tpu")), &["tpu", "INVALID_ARGUMENT"]);
    has(said(Device::open("cpu\0")), &["zero byte"]);
    has(said("square".parse::<Strategy>()), &["square", "NOT_FOUND"]);
    has(said("uniform".parse::<Strategy>()), &["INVALID_ARGUMENT"]);
    assert_eq!("uniform:4".parse::<Strategy>().unwrap(), Strategy::Uniform(4));
    assert_eq!(Strategy::Block(3).to_string(), "block:3");
    has(said(ckpt::class_parse("tau")), &["tau"]);
    assert_eq!(ckpt::class_name(ckpt::class_parse("sigma").unwrap()), "sigma");
}

#[test]
fn arenas() {
    let cpu = Device::cpu().unwrap();
    has(said(Arena::new(&cpu, ArenaOptions::new().alignment(48))), &["48", "alignment"]);
    let arena = Arena::new(&cpu, ArenaOptions::new().capacity(4096)).unwrap();
    has(said(arena.alloc(1 << 20)), &["BUDGET"]);
    let mut block = arena.alloc(10).unwrap();
    has(said(block.as_mut_slice::<f32>().map(|_| ())), &["10 bytes", "multiple of 4"]);
    block.as_mut_slice::<u8>().unwrap()[9] = 1;
    block.free().unwrap();
    let guarded = Arena::new(&cpu, ArenaOptions::new().guard()).unwrap();
    let mut block = guarded.alloc(64).unwrap();
    unsafe { *block.as_mut_ptr().add(64) = 77 };
    has(said(guarded.check()), &["CHECK"]);
    has(said(block.free()), &["CHECK"]);
}

#[test]
fn segments() {
    let build = |builder: SegmentBuilder| builder.build::<Layer>();
    has(said(build(SegmentBuilder::new("s").slot(Slot::new("a", 4)).slot(Slot::new("a", 4)).output(Output::new("o", 4)))), &["a"]);
    has(said(build(SegmentBuilder::new("s").slot(Slot::new("a", 4).reads(&[0])).output(Output::new("o", 4)))), &["reads", "s"]);
    has(said(build(SegmentBuilder::new("s").slot(Slot::new("", 4)).output(Output::new("o", 4)))), &["name"]);
    has(said(build(SegmentBuilder::new("s").output(Output::new("o\0", 4)))), &["zero byte"]);
    has(said(build(SegmentBuilder::new("s").slot(Slot::new("a", 4).flags(1 << 30)).output(Output::new("o", 4)))), &["flags"]);
}

#[test]
fn arrays() {
    let net = Net::new(2, Strategy::StoreAll, 0);
    let y = net.record(false).unwrap();
    has(said(net.tape.backward(&[Root::new(y, &[1.0f32; 3])])), &["output_grads[0]", "12 bytes", "expected 384"]);
    has(
        said(net.tape.read::<f32>(y).map(|_| ()).and_then(|_| net.tape.call(&net.def, &net.layers[0], &[y]).slot_bytes(&[1]).run())),
        &["slot_bytes", "1", "3"],
    );
    let reading = net.tape.read::<f32>(y).unwrap();
    has(said(net.tape.reset()), &["BUSY", "Reading"]);
    drop(reading);
    has(said(net.tape.input(&net.x_grad, None)), &["data", "gradients go"]);
    has(said(net.tape.input(&net.x, Some(&net.x))), &["grad", "one of its own"]);
    let grad = [1.0f32; COUNT];
    net.tape.backward(&[Root::new(y, &grad)]).unwrap();
    has(said(net.tape.backward(&[Root::new(y, &grad)])), &["STATE"]);
    has(said(net.tape.read::<f32>(y).map(|_| ())), &["STALE"]);
    has(said(net.tape.run(&net.def, &net.layers[0], &[y])), &["STALE"]);
    net.tape.reset().unwrap();
    let other = Net::new(2, Strategy::StoreAll, 0);
    let foreign = other.record(false).unwrap();
    has(said(net.tape.run(&net.def, &net.layers[0], &[foreign])), &["STALE"]);
    has(said(net.tape.set_step(1 << 40)), &["OVERFLOW"]);
    has(
        said(net.tape.adopt(99, &{
            other.tape.reset().unwrap();
            other.plan().unwrap();
            other.tape.plan(KEY).unwrap()
        })),
        &["NOT_FOUND"],
    );
}

/// Wrong types and double borrows inside a frame.
#[test]
fn frames() {
    let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = ckpt::Tape::new(&arena, &TapeOptions::default()).unwrap();
    let x = Shared::from(vec![1.0f32; 5]);
    let (def, code) = closures(
        SegmentBuilder::new("wrong").input(0).slot(Slot::new("s", 20)).output(Output::new("out", 20)),
        |f| {
            has(said(f.input::<f64>(0).map(|_| ())), &["input 0", "20 bytes", "multiple of 8"]);
            f.slot_mut::<f32>(0)?.fill(1.0);
            has(said(f.slot_mut::<f32>(0).map(|_| ())), &["slot 0", "in use"]);
            has(said(f.slot::<f32>(0).map(|_| ())), &["slot 0", "in use"]);
            let (a, b) = (f.input::<f32>(0)?, f.input::<u8>(0)?);
            assert_eq!((a.len(), b.len()), (5, 20));
            f.output_mut::<f32>(0)?.copy_from_slice(a);
            Ok(())
        },
        |f| {
            has(said(f.slot_mut::<f32>(0).map(|_| ())), &["slot 0", "consumed"]);
            has(said(f.output_mut::<f32>(0).map(|_| ())), &["output 0", "backward"]);
            Ok(())
        },
    )
    .unwrap();
    let input = tape.input(&x, None).unwrap();
    let y = tape.run_one(&def, &code, &[input]).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| x.set(0, 2.0))).is_err(), "inputs do not change");
    tape.backward(&[Root::new(y, &[1.0f32; 5])]).unwrap();
    x.set(0, 2.0);

    // A slot that is out of range, one that is never filled.
    let (def, code) =
        closures(SegmentBuilder::new("s").input(0).output(Output::new("out", 4)), |f| f.slot_mut::<f32>(3).map(|_| ()), |_| Ok(()))
            .unwrap();
    let input = tape.input(&x, None).unwrap();
    has(said(tape.run(&def, &code, &[input])), &["slot", "3"]);
    let (def, code) = closures(SegmentBuilder::new("lazy").input(0).output(Output::new("out", 4)), |_| Ok(()), |_| Ok(())).unwrap();
    let input = tape.input(&x, None).unwrap();
    has(said(tape.run(&def, &code, &[input])), &["lazy", "out", "NOT_FILLED"]);
}

/// An array that is a backward's gradient cannot be read by its callbacks.
#[test]
fn gradients_are_locked_while_they_are_written() {
    quiet_panics();
    let net = Net::new(1, Strategy::StoreAll, 0);
    let spy = net.x_grad.clone();
    let (def, code) = closures(
        SegmentBuilder::new("spy").input(0).output(Output::new("out", 4)),
        |f| f.output_mut::<f32>(0).map(|_| ()),
        move |f| {
            f.input_grad::<f32>(0)?;
            spy.get(0);
            Ok(())
        },
    )
    .unwrap();
    let x = net.tape.input(&net.x, Some(&net.x_grad)).unwrap();
    let y = net.tape.run_one(&def, &code, &[x]).unwrap();
    has(said(net.tape.backward(&[Root::new(y, &[1.0f32])])), &["panicked", "written to"]);
    net.x_grad.get(0);
}

#[test]
fn random_numbers() {
    has(said(Philox::pack(1, 1 << 36, 0, 0)), &["step", "OVERFLOW"]);
    has(said(Philox::new(0, 0, u64::MAX).fill_u32(0, &mut [0; 8])), &["OVERFLOW"]);
    has(said(Philox::new(0, 0, 0).fill_normal(0, 0.0, -1.0, &mut [0.0; 8])), &["stddev", "-1"]);
    has(said(Philox::new(0, 0, 0).fill_bernoulli(0, 1.5, &mut [0; 8])), &["probability", "1.5"]);
    assert_eq!(Philox::threshold(2.0), u64::MAX);
}

#[test]
fn structs_of_numbers_cannot_lie_about_their_size() {
    let model =
        ckpt::ModelDesc { struct_size: 1 << 20, layers: 2, hidden: 64, heads: 4, sequence: 32, micro_batch: 1, ..Default::default() };
    let estimate = ckpt::estimate_rank(&model, &ckpt::LayoutDesc::default(), None, sys::CKPT_RECOMPUTE_NONE, 0, 0).unwrap();
    assert!(estimate.activation_bytes > 0);
    let refused = ckpt::estimate_rank(&ckpt::ModelDesc::default(), &ckpt::LayoutDesc::default(), None, 0, 0, 0).unwrap_err();
    has(refused.error.to_string(), &["layers"]);
}

#[allow(dead_code)]
fn the_type_says_what_runs(def: &SegmentDef<Layer>) -> usize {
    def.output_count()
}
