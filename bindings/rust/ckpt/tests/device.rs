//! A device whose memory the host may not read: slices are refused, addresses and streams go through, a step is captured and launched.
//! Runs where CKPT_PLUGIN_PATH names a folder with a plugin (the tests have a double of CUDA that needs no GPU).
mod common;
use ckpt::{closures, Arena, ArenaOptions, Copy, Device, Frame, Output, Root, SegmentBuilder, Shared, Slot, Stream, Tape, TapeOptions};
use std::cell::RefCell;
use std::os::raw::c_void;
use std::rc::Rc;

const BYTES: usize = 1024;
const KEY: u64 = 3;

fn to_host(stream: &Stream, data: *const c_void) -> Vec<u8> {
    let mut bytes = vec![0u8; BYTES];
    unsafe { stream.copy(bytes.as_mut_ptr() as *mut _, data, BYTES, Copy::DeviceToHost).unwrap() };
    stream.synchronize().unwrap();
    bytes
}

#[test]
fn addresses_streams_and_graphs() {
    if std::env::var_os("CKPT_PLUGIN_PATH").is_none() {
        return eprintln!("left out: no CKPT_PLUGIN_PATH");
    }
    let device = Device::open("cuda").unwrap();
    assert!(!device.is_host().unwrap());
    let stream = Rc::new(device.stream().unwrap());
    let arena = Arena::new(&device, unsafe { ArenaOptions::new().capacity(64 << 20).stream(stream.as_ptr()) }).unwrap();
    let tape = Tape::new(&arena, &TapeOptions { seed: 9, ..Default::default() }).unwrap();
    let mut block = arena.alloc(3 * BYTES).unwrap();
    assert!(block.as_mut_slice::<f32>().unwrap_err().text().contains("another device"));
    let memory = block.as_mut_ptr();
    let (x, x_grad, draws) =
        (memory as *mut c_void, memory.wrapping_add(BYTES) as *mut c_void, memory.wrapping_add(2 * BYTES) as *mut c_void);
    unsafe { stream.fill(x, 3, BYTES).unwrap() };

    let host = Shared::filled(BYTES, 1u8);
    assert!(tape.input(&host, None).unwrap_err().text().contains("another device"));

    let said = Rc::new(RefCell::new(Vec::new()));
    let (work, sink) = (stream.clone(), said.clone());
    let forward = move |f: &Frame<'_>| {
        sink.borrow_mut().push(f.input::<u8>(0).unwrap_err().to_string());
        assert_eq!(f.stream(), work.as_ptr());
        if f.needs(0) {
            unsafe { work.philox_u32(&f.random(0), 0, BYTES / 4, f.slot_ptr(0) as *mut u32)? };
        }
        if f.needs_output(0) {
            unsafe { work.copy(f.output_ptr(0), f.input_ptr(0), BYTES, Copy::DeviceToDevice)? };
        }
        Ok(())
    };
    let work = stream.clone();
    let backward = move |f: &Frame<'_>| {
        let (grad, accumulate) = f.input_grad_ptr(0);
        assert!(!accumulate && !grad.is_null());
        unsafe {
            work.copy(draws, f.slot_ptr(0), BYTES, Copy::DeviceToDevice)?;
            work.copy(grad, f.output_grad_ptr(0), BYTES, Copy::DeviceToDevice)
        }
    };
    let builder = SegmentBuilder::new("copy").input(0).slot(Slot::new("draws", BYTES)).output(Output::new("out", BYTES));
    let (def, code) = closures(builder, forward, backward).unwrap();
    let step = |checked: bool| {
        tape.begin(KEY).unwrap();
        let input = unsafe { tape.input_on_device(x, BYTES, x_grad, 0, false).unwrap() };
        let y = tape.run_one(&def, &code, &[input]).unwrap();
        if checked {
            assert!(tape.read::<u8>(y).map(|_| ()).unwrap_err().text().contains("read_ptr"));
            assert_eq!(to_host(&stream, tape.read_ptr(y).unwrap()), vec![3; BYTES]);
            assert!(tape.backward(&[Root::new(y, &[1u8; BYTES])]).unwrap_err().text().contains("on_device"));
        }
        tape.backward(&[unsafe { Root::on_device(y, x) }]).unwrap();
    };
    let expected = |step: u64| {
        let mut words = vec![0u32; BYTES / 4];
        ckpt::Philox::pack(9, step, 0, 0).unwrap().fill_u32(0, &mut words).unwrap();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
    };
    step(true);
    assert!(said.borrow()[0].contains("input_ptr"), "{}", said.borrow()[0]);
    assert_eq!(to_host(&stream, x_grad), vec![3; BYTES]);
    assert_eq!(to_host(&stream, draws), expected(0));
    step(false);
    step(false);

    // A whole step as a graph: the first replay is the step that was captured, with its draws.
    tape.prepare(KEY).unwrap();
    stream.begin_capture().unwrap();
    step(false);
    let graph = stream.end_capture().unwrap();
    for number in 3..6 {
        tape.replay().unwrap();
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!(to_host(&stream, draws), expected(number), "replay of step {}", number);
    }
    assert_eq!(tape.step().unwrap(), 6);
    step(false);
    assert_eq!(to_host(&stream, draws), expected(6));
    drop((tape, graph));
}

/// The layers on such a device: what takes slices is refused.
#[test]
#[cfg(feature = "ops")]
fn layers() {
    use ckpt::ops::{Gpt, GptDesc, LinearShape, Ops};
    if std::env::var_os("CKPT_PLUGIN_PATH").is_none() {
        return eprintln!("left out: no CKPT_PLUGIN_PATH");
    }
    let device = Device::open("cuda").unwrap();
    let stream = device.stream().unwrap();
    let ops = unsafe { Ops::on_device(&device, &stream, ckpt::sys::CKPT_DTYPE_BFLOAT16).unwrap() };
    assert_eq!(ops.info().unwrap().dtype, ckpt::sys::CKPT_DTYPE_BFLOAT16);
    let shape = LinearShape { rows: 1, inputs: 1, outputs: 1 };
    assert!(ops.linear_forward(shape, &[1.0], &[1.0], None, &mut [0.0]).unwrap_err().text().contains("another device"));
    let gpt = Gpt::new(&ops, &GptDesc { layers: 1, heads: 1, channels: 16, sequence: 8, batch: 1, vocabulary: 16, ..Default::default() })
        .unwrap();
    let parameters = Shared::filled(gpt.parameter_count(), 0.0f32);
    assert!(gpt.bind(&parameters, None).unwrap_err().text().contains("bind_on_device"));
    let cpu = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = Tape::new(&cpu, &TapeOptions::default()).unwrap();
    assert!(gpt.record_dry(&tape).unwrap_err().text().contains("another device"));
}
