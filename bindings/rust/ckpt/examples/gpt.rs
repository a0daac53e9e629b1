//! Trains a byte-level GPT on the CPU within a memory budget, as the C program examples/train_gpt.c does, with the same bits.
//!
//!     cargo run --example gpt -- FILE [BUDGET] [STEPS]
use ckpt::ops::{AdamW, Gpt, GptDesc, Ops};
use ckpt::{Arena, ArenaOptions, Device, Philox, Result, Root, Shared, Tape, TapeOptions};

const KEY: u64 = 1;
const SEED: u64 = 1;
const BATCH: usize = 4;
const SEQUENCE: usize = 32;
const TEXT_SEGMENT: u64 = (1 << 28) - 1; // the last there is: no segment of the model draws from it

/// A batch is a function of (seed, step) alone.
fn text_batch(text: &[u8], step: u64, tokens: &Shared<i32>, targets: &Shared<i32>) -> Result<()> {
    let starts = (text.len() - SEQUENCE) as u64;
    let philox = Philox::pack(SEED, step, TEXT_SEGMENT, 0)?;
    for row in 0..BATCH {
        let mut words = [0u32; 2];
        philox.fill_u32(2 * row as u64, &mut words)?;
        let start = (((words[0] as u64) << 32 | words[1] as u64) % starts) as usize;
        for k in 0..SEQUENCE {
            tokens.set(row * SEQUENCE + k, text[start + k] as i32);
            targets.set(row * SEQUENCE + k, text[start + k + 1] as i32);
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = match arguments.first() {
        Some(file) => std::fs::read(file).map_err(|error| format!("{}: {}", file, error))?,
        None => return Err("usage: gpt FILE [BUDGET] [STEPS]".into()),
    };
    let budget = arguments.get(1).map_or(Ok(0), |text| ckpt::parse_bytes(text))?;
    let steps: u64 = arguments.get(2).map_or(Ok(20), |text| text.parse())?;

    let ops = Ops::new(2, ckpt::sys::CKPT_ISA_BEST)?;
    let desc = GptDesc {
        attention: ckpt::sys::CKPT_ATTENTION_TILED,
        layers: 2,
        heads: 2,
        channels: 32,
        sequence: SEQUENCE,
        batch: BATCH,
        vocabulary: 256,
        dropout_probability: 0.1,
        ..Default::default()
    };
    let gpt = Gpt::new(&ops, &desc)?;
    let zeros = || Shared::filled(gpt.parameter_count(), 0.0f32);
    let (parameters, gradients, first_moment, second_moment) = (zeros(), zeros(), zeros(), zeros());
    gpt.bind(&parameters, Some(&gradients))?;
    gpt.init(SEED)?;

    let arena = Arena::new(&Device::cpu()?, ArenaOptions::new())?;
    let tape = Tape::new(&arena, &TapeOptions { budget_bytes: budget, seed: SEED, ..Default::default() })?;
    tape.begin_dry(KEY)?;
    let loss = gpt.record_dry(&tape)?;
    tape.backward(&[Root::new(loss, &[1.0f32])])?; // the plan, or its refusal with the smallest budget

    let tokens = Shared::filled(BATCH * SEQUENCE, 0i32);
    let targets = Shared::filled(BATCH * SEQUENCE, 0i32);
    for step in 0..steps {
        text_batch(&text, step, &tokens, &targets)?;
        gradients.fill(0.0);
        tape.set_step(step)?; // dropout's masks depend on it
        tape.begin(KEY)?;
        let loss = gpt.record(&tape, &tokens, &targets, false)?;
        let value = gpt.loss();
        tape.backward(&[Root::new(loss, &[1.0f32])])?;
        let stats = tape.stats()?;
        assert_eq!(stats.arena_predicted_bytes, stats.arena_measured_bytes);
        let update = AdamW { learning_rate: 0.001, weight_decay: 0.1, max_norm: 1.0, step: step + 1, ..Default::default() };
        gpt.update(&update, &first_moment, &second_moment, true)?;
        println!(
            "step {}  loss {:.4}  peak {} bytes, {} forwards run again",
            step + 1,
            value,
            stats.peak_measured_bytes,
            stats.recompute_count
        );
        if step + 1 == steps {
            println!("loss bits {:08x}", value.to_bits());
        }
    }
    Ok(())
}
