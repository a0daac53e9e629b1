//! The layers library: kernels against plain loops, layers and models on a tape.
#![cfg(feature = "ops")]
mod common;
use ckpt::ops::*;
use ckpt::{Arena, ArenaOptions, Device, Philox, Root, Shared, Tape, TapeOptions};

fn ops() -> Ops {
    Ops::new(1, ckpt::sys::CKPT_ISA_BEST).unwrap()
}

fn normal(seed: u64, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Philox::new(seed, 0, 0).fill_normal(0, 0.0, 1.0, &mut values).unwrap();
    values
}

fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{} {}", a, b);
    }
}

#[test]
fn kernels() {
    let ops = ops();
    let shape = LinearShape { rows: 5, inputs: 7, outputs: 3 };
    let (input, weight, bias, out_grad) = (normal(1, 35), normal(2, 21), normal(3, 3), normal(4, 15));
    let mut out = vec![0.0; 15];
    ops.linear_forward(shape, &input, &weight, Some(&bias), &mut out).unwrap();
    let plain: Vec<f32> =
        (0..15).map(|k| bias[k % 3] + (0..7).map(|i| input[k / 3 * 7 + i] * weight[k % 3 * 7 + i]).sum::<f32>()).collect();
    close(&out, &plain);
    let residual = normal(5, 15);
    let mut sum = vec![0.0; 15];
    ops.linear_residual_forward(shape, &input, &weight, Some(&bias), &residual, 0.0, None, &mut sum).unwrap();
    let mut added = vec![0.0; 15];
    ops.add(&plain, &residual, &mut added).unwrap();
    close(&sum, &added);
    let (mut in_grad, mut weight_grad, mut bias_grad) = (vec![0.0; 35], vec![1.0; 21], vec![0.0; 3]);
    ops.linear_backward(shape, &input, &weight, &out_grad, Some(&mut in_grad), false, Some(&mut weight_grad), Some(&mut bias_grad))
        .unwrap();
    close(&in_grad, &(0..35).map(|k| (0..3).map(|o| out_grad[k / 7 * 3 + o] * weight[o * 7 + k % 7]).sum()).collect::<Vec<f32>>());
    close(&bias_grad, &(0..3).map(|o| (0..5).map(|r| out_grad[r * 3 + o]).sum()).collect::<Vec<f32>>());
    close(&[weight_grad[8]], &[1.0 + (0..5).map(|r| out_grad[r * 3 + 1] * input[r * 7 + 1]).sum::<f32>()]);

    let (mut norm, mut mean, mut rstd) = (vec![0.0; 35], vec![0.0; 5], vec![0.0; 5]);
    ops.layernorm_forward(5, 7, 1e-5, &input, &[1.0; 7], &[0.0; 7], &mut norm, &mut mean, &mut rstd).unwrap();
    assert!(norm[..7].iter().sum::<f32>().abs() < 1e-4);
    ops.layernorm_backward(5, 7, &input, &mean, &rstd, &[1.0; 7], &normal(6, 35), None, &mut in_grad, false, None, None).unwrap();
    assert!(in_grad[..7].iter().sum::<f32>().abs() < 1e-3, "a norm's gradient is free of its mean");

    let mut gelu = vec![0.0; 35];
    ops.gelu_forward(5, 7, &input, None, &mut gelu).unwrap();
    close(&gelu, &input.iter().map(|x| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044715 * x * x * x)).tanh())).collect::<Vec<f32>>());
    ops.gelu_backward(5, 7, &input, None, &[1.0; 35], &mut in_grad, false, None).unwrap();
    let step = 1e-2f32;
    let moved: Vec<f32> = input.iter().map(|x| x + step).collect();
    let mut ahead = vec![0.0; 35];
    ops.gelu_forward(5, 7, &moved, None, &mut ahead).unwrap();
    for k in 0..35 {
        assert!((in_grad[k] - (ahead[k] - gelu[k]) / step).abs() < 2e-2);
    }

    let philox = Philox::new(1, 2, 0);
    let mut dropped = vec![0.0; 35];
    ops.dropout_forward(&input, None, 0.25, Some(&philox), &mut dropped).unwrap();
    let mut mask = vec![0u8; 35];
    philox.fill_bernoulli(0, 0.75, &mut mask).unwrap();
    close(&dropped, &(0..35).map(|k| input[k] * mask[k] as f32 / 0.75).collect::<Vec<f32>>());
    ops.dropout_backward(&input, 0.25, Some(&philox), &mut in_grad, false).unwrap();
    close(&in_grad, &dropped);

    let targets = [1, 0, -1, 2, 2];
    let mut lse = vec![0.0; 5];
    let loss = ops.cross_entropy_forward(3, -1, &plain, &targets, &mut lse).unwrap();
    let row = |r: usize| (0..3).map(|o| plain[r * 3 + o].exp()).sum::<f32>().ln() - plain[r * 3 + targets[r].max(0) as usize];
    close(&[loss], &[(row(0) + row(1) + row(3) + row(4)) / 4.0]);
    let mut logits_grad = vec![0.0; 15];
    ops.cross_entropy_backward(3, -1, &plain, &targets, &lse, 1.0, &mut logits_grad).unwrap();
    assert!(logits_grad.iter().sum::<f32>().abs() < 1e-5 && logits_grad[6..9] == [0.0; 3]);

    assert!((ops.norm(&[3.0, 4.0]).unwrap() - 5.0).abs() < 1e-6);
    let (mut value, mut first, mut second) = (vec![1.0], vec![0.0], vec![0.0]);
    ops.adamw(&AdamW { learning_rate: 0.1, step: 1, ..Default::default() }, &[2.0], &mut value, &mut first, &mut second).unwrap();
    close(&value, &[0.9]);
    let mut drawn = vec![0.0; 35];
    ops.normal(&Philox::new(1, 0, 0), 0.0, 1.0, &mut drawn).unwrap();
    assert_eq!(common::bits(&drawn), common::bits(&input));
    let mut bytes = vec![0u8; 140];
    ops.from_float(&input, &mut bytes).unwrap();
    ops.to_float(&bytes, &mut drawn).unwrap();
    assert_eq!(drawn, input);
    ops.check().unwrap();
    let (isa, blas) = ops.names().unwrap();
    assert!(!isa.is_empty() && !blas.is_empty());
}

#[test]
fn attention_and_embedding() {
    let ops = ops();
    let shape = AttentionShape { batch: 2, sequence: 5, heads: 2, channels: 8 };
    let (qkv, out_grad) = (normal(1, 2 * 5 * 24), normal(2, 80));
    let (mut weights, mut out, mut tiled, mut lse) = (vec![0.0; 100], vec![0.0; 80], vec![0.0; 80], vec![0.0; 20]);
    ops.attention_forward(shape, &qkv, 0.0, None, &mut weights, &mut out).unwrap();
    ops.attention_tiled_forward(shape, &qkv, 0.0, None, &mut lse, &mut tiled).unwrap();
    close(&out, &tiled);
    close(&out[..8], &qkv[16..24]); // the first position sees itself alone
    let (mut a, mut b) = (vec![0.0; 240], vec![0.0; 240]);
    ops.attention_backward(shape, &qkv, &weights, &out_grad, 0.0, None, &mut a).unwrap();
    ops.attention_tiled_backward(shape, &qkv, &tiled, &lse, &out_grad, 0.0, None, &mut b).unwrap();
    close(&a, &b);

    let shape = EmbeddingShape { batch: 1, sequence: 3, channels: 2, vocabulary: 4 };
    let (table, position) = (normal(3, 8), normal(4, 6));
    let mut out = vec![0.0; 6];
    ops.embedding_forward(shape, &[3, 0, 3], &table, Some(&position), &mut out).unwrap();
    close(&out, &[6, 7, 0, 1, 6, 7].iter().zip(&position).map(|(&k, p)| table[k] + p).collect::<Vec<f32>>());
    let mut grad = vec![0.0; 8];
    ops.embedding_backward(shape, &[3, 0, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Some(&mut grad), None).unwrap();
    assert_eq!(grad, [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 6.0, 8.0]);
}

#[test]
fn bad_input() {
    let ops = ops();
    let shape = LinearShape { rows: 5, inputs: 7, outputs: 3 };
    let error = ops.linear_forward(shape, &[0.0; 34], &[0.0; 21], None, &mut [0.0; 15]).unwrap_err();
    assert!(error.text().contains("input has 34 elements, expected 35"), "{}", error);
    let tokens = EmbeddingShape { batch: 1, sequence: 1, channels: 2, vocabulary: 4 };
    let error = ops.embedding_forward(tokens, &[4], &[0.0; 8], None, &mut [0.0; 2]).unwrap_err();
    assert!(error.text().contains('4') && error.name() == "INVALID_ARGUMENT", "{}", error);
    let empty = ops.linear_forward(LinearShape { rows: 0, inputs: 0, outputs: 0 }, &[], &[], None, &mut []).unwrap_err();
    assert!(empty.text().contains("rows"), "{}", empty);
    assert_eq!(Ops::new(5000, 0).unwrap_err().name(), "INVALID_ARGUMENT");
    assert!(Ops::new(1, 77).unwrap_err().text().contains("77"));

    let layer = Layer::linear(&ops, 5, 7, 3, true).unwrap();
    let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = Tape::new(&arena, &TapeOptions::default()).unwrap();
    let (x, short) = (Shared::filled(35, 1.0f32), Shared::filled(34, 1.0f32));
    let input = tape.input(&x, None).unwrap();
    assert_eq!(layer.run(&tape, &[input], false).map(|_| ()).unwrap_err().name(), "STATE"); // not bound
    let parameters = Shared::filled(24, 0.0f32);
    assert!(layer.bind(&short, None).unwrap_err().text().contains("parameters has 34 elements, expected 24"));
    assert!(layer.bind((&parameters, 1..25), None).unwrap_err().text().contains("of an array of 24"));
    layer.bind(&parameters, None).unwrap();
    tape.reset().unwrap();
    let input = tape.input(&short, None).unwrap();
    assert!(layer.run(&tape, &[input], false).unwrap_err().text().contains("136 bytes"));
    assert!(layer.run(&tape, &[], false).unwrap_err().text().contains("0 buffers"));
    assert!(layer.bind_tied(&parameters, None).is_err(), "not a tied head");
    // One array, two uses that exclude each other.
    tape.reset().unwrap();
    let grads = Shared::filled(24, 0.0f32);
    layer.bind(&parameters, Some((&grads).into())).unwrap();
    assert!(tape.input(&grads, None).unwrap_err().text().contains("where gradients go"));
    assert!(tape.input(&x, Some(&parameters)).unwrap_err().text().contains("a layer's parameters"));
    assert!(layer.bind(&parameters, Some((&parameters).into())).is_err());
    tape.input(&parameters, None).unwrap();
    assert!(layer.init(1, 0).unwrap_err().text().contains("a recording's input"));
    tape.reset().unwrap();
    layer.init(1, 0).unwrap();
    let gpt = GptDesc { layers: 1, heads: 3, channels: 32, sequence: 4, batch: 1, vocabulary: 16, ..Default::default() };
    assert!(Gpt::new(&ops, &gpt).map(|_| ()).unwrap_err().text().contains("heads"));
}

/// A model of layers by hand: the model that the library makes, bit by bit.
#[test]
fn layers_by_hand_are_the_gpt() {
    const ROWS: usize = 2 * 8;
    let ops = ops();
    let desc = GptDesc {
        layers: 2,
        heads: 2,
        channels: 16,
        sequence: 8,
        batch: 2,
        vocabulary: 32,
        attention: ckpt::sys::CKPT_ATTENTION_TILED,
        ..Default::default()
    };
    let gpt = Gpt::new(&ops, &desc).unwrap();
    let zeros = || Shared::filled(gpt.parameter_count(), 0.0f32);
    let (parameters, gradients, by_hand) = (zeros(), zeros(), zeros());
    gpt.bind(&parameters, Some(&gradients)).unwrap();
    gpt.init(3).unwrap();
    assert!(gpt.tensors().unwrap().len() > 10);
    let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = Tape::new(&arena, &TapeOptions::default()).unwrap();
    let tokens = Shared::from((0..ROWS as i32).collect::<Vec<_>>());
    let targets = Shared::from((1..=ROWS as i32).collect::<Vec<_>>());
    let loss = gpt.record(&tape, &tokens, &targets, false).unwrap();
    let value = gpt.loss();
    tape.backward(&[Root::new(loss, &[1.0f32])]).unwrap();

    let embedding =
        Layer::embedding(&ops, &EmbeddingDesc { batch: 2, sequence: 8, channels: 16, vocabulary: 32, ..Default::default() }).unwrap();
    let block = || {
        Layer::block(
            &ops,
            &BlockDesc { attention: ckpt::sys::CKPT_ATTENTION_TILED, batch: 2, sequence: 8, channels: 16, heads: 2, ..Default::default() },
        )
        .unwrap()
    };
    let head = Layer::head(&ops, &HeadDesc { rows: ROWS, channels: 16, vocabulary: 32, tied: true, ..Default::default() }).unwrap();
    let layers = [embedding, block(), block(), head];
    let mut at = 0;
    for layer in &layers {
        let range = at..at + layer.parameter_count();
        layer.bind((&parameters, range.clone()), Some((&by_hand, range.clone()).into())).unwrap();
        at = range.end;
    }
    assert_eq!(at, parameters.len());
    layers[3].bind_tied((&parameters, 0..32 * 16), Some((&by_hand, 0..32 * 16).into())).unwrap();
    assert_eq!(layers[1].tensors().unwrap().len(), 12);
    let mut x = tape.input(&tokens, None).unwrap();
    for layer in &layers[..3] {
        x = layer.run(&tape, &[x], false).unwrap();
    }
    let y = tape.input(&targets, None).unwrap();
    let loss = layers[3].run(&tape, &[x, y], false).unwrap();
    assert_eq!(layers[3].loss().unwrap().to_bits(), value.to_bits());
    // Layers may go: the recording keeps them.
    drop(layers);
    tape.backward(&[Root::new(loss, &[1.0f32])]).unwrap();
    assert_eq!(common::bits(&by_hand.to_vec()), common::bits(&gradients.to_vec()));
}

#[test]
fn small_layers() {
    let ops = ops();
    let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new()).unwrap();
    let tape = Tape::new(&arena, &TapeOptions::default()).unwrap();
    let (x, grad) = (Shared::from(normal(1, 24)), Shared::filled(24, 0.0f32));
    let norm = Layer::layernorm(&ops, 4, 6, 0.0).unwrap();
    let bound = Shared::filled(norm.parameter_count(), 0.0f32);
    let grads = Shared::filled(norm.parameter_count(), 0.0f32);
    norm.bind(&bound, Some((&grads).into())).unwrap();
    norm.init(1, 0).unwrap();
    let mut y = tape.input(&x, Some(&grad)).unwrap();
    for layer in [&norm, &Layer::gelu(&ops, 24).unwrap(), &Layer::dropout(&ops, 24, 0.5).unwrap()] {
        y = layer.run(&tape, &[y], false).unwrap();
        assert!(layer.loss().is_none() && !layer.segment(false).0.is_null());
    }
    assert!(tape.read::<f32>(y).unwrap().contains(&0.0), "some are dropped");
    tape.backward(&[Root::new(y, &[1.0f32; 24])]).unwrap();
    assert!(grad.to_vec().iter().any(|value| *value != 0.0));
}
