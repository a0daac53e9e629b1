//! Level 1: attention.
#![allow(clippy::too_many_arguments)]
use super::kernels::{snapshot, wants, AttentionShape};
use super::{check_ops, Ops};
use crate::error::Result;
use crate::philox::Philox;
use crate::sys;
use std::ptr;

impl Ops {
    fn attention_lengths(shape: AttentionShape, qkv: usize, out: usize) -> Result<()> {
        wants("qkv", qkv, &[shape.batch, shape.sequence, 3, shape.channels])?;
        wants("out", out, &[shape.batch, shape.sequence, shape.channels])
    }

    /// Keeps the weights, [batch, heads, sequence, sequence].
    pub fn attention_forward(
        &self,
        shape: AttentionShape,
        qkv: &[f32],
        dropout_probability: f32,
        philox: Option<&Philox>,
        weights: &mut [f32],
        out: &mut [f32],
    ) -> Result<()> {
        let AttentionShape { batch, sequence, heads, channels } = shape;
        self.slices()?;
        Self::attention_lengths(shape, qkv.len(), out.len())?;
        wants("weights", weights.len(), &[batch, heads, sequence, sequence])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_attention_forward(
                self.as_ptr(),
                qkv.as_ptr() as *const _,
                batch,
                sequence,
                heads,
                channels,
                dropout_probability,
                philox,
                weights.as_mut_ptr() as *mut _,
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    pub fn attention_backward(
        &self,
        shape: AttentionShape,
        qkv: &[f32],
        weights: &[f32],
        out_grad: &[f32],
        dropout_probability: f32,
        philox: Option<&Philox>,
        qkv_grad: &mut [f32],
    ) -> Result<()> {
        let AttentionShape { batch, sequence, heads, channels } = shape;
        self.slices()?;
        Self::attention_lengths(shape, qkv.len(), out_grad.len())?;
        wants("weights", weights.len(), &[batch, heads, sequence, sequence])?;
        wants("qkv_grad", qkv_grad.len(), &[qkv.len()])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_attention_backward(
                self.as_ptr(),
                qkv.as_ptr() as *const _,
                weights.as_ptr() as *const _,
                out_grad.as_ptr() as *const _,
                batch,
                sequence,
                heads,
                channels,
                dropout_probability,
                philox,
                qkv_grad.as_mut_ptr() as *mut _,
            )
        })
    }

    /// Keeps the log-sum-exp of each row, [batch, heads, sequence].
    pub fn attention_tiled_forward(
        &self,
        shape: AttentionShape,
        qkv: &[f32],
        dropout_probability: f32,
        philox: Option<&Philox>,
        lse: &mut [f32],
        out: &mut [f32],
    ) -> Result<()> {
        let AttentionShape { batch, sequence, heads, channels } = shape;
        self.slices()?;
        Self::attention_lengths(shape, qkv.len(), out.len())?;
        wants("lse", lse.len(), &[batch, heads, sequence])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_attention_tiled_forward(
                self.as_ptr(),
                qkv.as_ptr() as *const _,
                batch,
                sequence,
                heads,
                channels,
                dropout_probability,
                philox,
                lse.as_mut_ptr(),
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    pub fn attention_tiled_backward(
        &self,
        shape: AttentionShape,
        qkv: &[f32],
        out: &[f32],
        lse: &[f32],
        out_grad: &[f32],
        dropout_probability: f32,
        philox: Option<&Philox>,
        qkv_grad: &mut [f32],
    ) -> Result<()> {
        let AttentionShape { batch, sequence, heads, channels } = shape;
        self.slices()?;
        Self::attention_lengths(shape, qkv.len(), out.len())?;
        wants("lse", lse.len(), &[batch, heads, sequence])?;
        wants("out_grad", out_grad.len(), &[out.len()])?;
        wants("qkv_grad", qkv_grad.len(), &[qkv.len()])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_attention_tiled_backward(
                self.as_ptr(),
                qkv.as_ptr() as *const _,
                out.as_ptr() as *const _,
                lse.as_ptr(),
                out_grad.as_ptr() as *const _,
                batch,
                sequence,
                heads,
                channels,
                dropout_probability,
                philox,
                qkv_grad.as_mut_ptr() as *mut _,
            )
        })
    }
}
