/* Written by bindings/generate.py; do not edit. Prints the size and field offsets of each public struct, the bytes of its
 * initialiser, and the value of each constant, as JSON, one to a line. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/ckpt.h"
#include "ckpt/ops.h"

static void bytes(const void *data, size_t count) {
  const unsigned char *each = data;
  for (size_t k = 0; k < count; ++k) printf("%02x", each[k]);
}

#define BEGIN(type) printf("\"" #type "\": {\"size\": %zu, \"fields\": {", sizeof(type))
#define FIELD(type, name, comma) printf("\"" #name "\": [%zu, %zu]" comma, offsetof(type, name), sizeof(((type *)0)->name))
#define INIT(type, value)               \
  do {                                  \
    const type init = value;            \
    printf("}, \"init\": \"");           \
    bytes(&init, sizeof init);          \
    printf("\"");                       \
  } while (0)
#define NO_INIT() printf("}")
#define END(last) printf("}%s\n", last ? "" : ",")
#define VALUE(name, last) printf("\"" #name "\": %lld%s\n", (long long)(name), last ? "" : ",")

static void print_ckpt_device_info(void) {
  BEGIN(ckpt_device_info);
  FIELD(ckpt_device_info, struct_size, ", ");
  FIELD(ckpt_device_info, kind, ", ");
  FIELD(ckpt_device_info, index, ", ");
  FIELD(ckpt_device_info, thread_count, ", ");
  FIELD(ckpt_device_info, total_bytes, ", ");
  FIELD(ckpt_device_info, available_bytes, ", ");
  FIELD(ckpt_device_info, name, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_arena_desc(void) {
  BEGIN(ckpt_arena_desc);
  FIELD(ckpt_arena_desc, struct_size, ", ");
  FIELD(ckpt_arena_desc, flags, ", ");
  FIELD(ckpt_arena_desc, capacity_bytes, ", ");
  FIELD(ckpt_arena_desc, alignment_bytes, ", ");
  FIELD(ckpt_arena_desc, stream, ", ");
  FIELD(ckpt_arena_desc, slab, ", ");
  FIELD(ckpt_arena_desc, alloc, ", ");
  FIELD(ckpt_arena_desc, free, ", ");
  FIELD(ckpt_arena_desc, user, ", ");
  FIELD(ckpt_arena_desc, release, "");
  INIT(ckpt_arena_desc, CKPT_ARENA_DESC_INIT);
  END(0);
}

static void print_ckpt_arena_stats(void) {
  BEGIN(ckpt_arena_stats);
  FIELD(ckpt_arena_stats, struct_size, ", ");
  FIELD(ckpt_arena_stats, block_count, ", ");
  FIELD(ckpt_arena_stats, in_use_bytes, ", ");
  FIELD(ckpt_arena_stats, peak_in_use_bytes, ", ");
  FIELD(ckpt_arena_stats, height_bytes, ", ");
  FIELD(ckpt_arena_stats, capacity_bytes, ", ");
  FIELD(ckpt_arena_stats, largest_free_bytes, ", ");
  FIELD(ckpt_arena_stats, alloc_count, ", ");
  FIELD(ckpt_arena_stats, free_count, ", ");
  FIELD(ckpt_arena_stats, failed_count, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_slot(void) {
  BEGIN(ckpt_slot);
  FIELD(ckpt_slot, name, ", ");
  FIELD(ckpt_slot, bytes, ", ");
  FIELD(ckpt_slot, reads, ", ");
  FIELD(ckpt_slot, read_count, ", ");
  FIELD(ckpt_slot, group, ", ");
  FIELD(ckpt_slot, cost_seconds, ", ");
  FIELD(ckpt_slot, flags, ", ");
  FIELD(ckpt_slot, reserved, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_output(void) {
  BEGIN(ckpt_output);
  FIELD(ckpt_output, name, ", ");
  FIELD(ckpt_output, bytes, ", ");
  FIELD(ckpt_output, grad_bytes, ", ");
  FIELD(ckpt_output, reads, ", ");
  FIELD(ckpt_output, read_count, ", ");
  FIELD(ckpt_output, group, ", ");
  FIELD(ckpt_output, memory, ", ");
  FIELD(ckpt_output, cost_seconds, ", ");
  FIELD(ckpt_output, flags, ", ");
  FIELD(ckpt_output, in_place_input, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_chain_segment(void) {
  BEGIN(ckpt_chain_segment);
  FIELD(ckpt_chain_segment, name, ", ");
  FIELD(ckpt_chain_segment, forward_seconds, ", ");
  FIELD(ckpt_chain_segment, backward_seconds, ", ");
  FIELD(ckpt_chain_segment, slots, ", ");
  FIELD(ckpt_chain_segment, outputs, ", ");
  FIELD(ckpt_chain_segment, inputs, ", ");
  FIELD(ckpt_chain_segment, input_flags, ", ");
  FIELD(ckpt_chain_segment, slot_count, ", ");
  FIELD(ckpt_chain_segment, output_count, ", ");
  FIELD(ckpt_chain_segment, input_count, ", ");
  FIELD(ckpt_chain_segment, flags, ", ");
  FIELD(ckpt_chain_segment, forward_scratch_bytes, ", ");
  FIELD(ckpt_chain_segment, backward_scratch_bytes, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_chain_input(void) {
  BEGIN(ckpt_chain_input);
  FIELD(ckpt_chain_input, bytes, ", ");
  FIELD(ckpt_chain_input, grad_bytes, ", ");
  FIELD(ckpt_chain_input, memory, ", ");
  FIELD(ckpt_chain_input, grad, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_chain_desc(void) {
  BEGIN(ckpt_chain_desc);
  FIELD(ckpt_chain_desc, struct_size, ", ");
  FIELD(ckpt_chain_desc, segment_size, ", ");
  FIELD(ckpt_chain_desc, slot_size, ", ");
  FIELD(ckpt_chain_desc, output_size, ", ");
  FIELD(ckpt_chain_desc, inputs, ", ");
  FIELD(ckpt_chain_desc, segments, ", ");
  FIELD(ckpt_chain_desc, input_count, ", ");
  FIELD(ckpt_chain_desc, segment_count, ", ");
  FIELD(ckpt_chain_desc, output_grad, ", ");
  FIELD(ckpt_chain_desc, flags, ", ");
  FIELD(ckpt_chain_desc, alignment_bytes, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_plan_desc(void) {
  BEGIN(ckpt_plan_desc);
  FIELD(ckpt_plan_desc, struct_size, ", ");
  FIELD(ckpt_plan_desc, strategy, ", ");
  FIELD(ckpt_plan_desc, k, ", ");
  FIELD(ckpt_plan_desc, in_flight_count, ", ");
  FIELD(ckpt_plan_desc, keep_patterns, ", ");
  FIELD(ckpt_plan_desc, recompute_patterns, ", ");
  FIELD(ckpt_plan_desc, keep_pattern_count, ", ");
  FIELD(ckpt_plan_desc, recompute_pattern_count, ", ");
  FIELD(ckpt_plan_desc, budget_bytes, ", ");
  FIELD(ckpt_plan_desc, work_limit, ", ");
  FIELD(ckpt_plan_desc, plan_class, ", ");
  FIELD(ckpt_plan_desc, reserved, "");
  INIT(ckpt_plan_desc, CKPT_PLAN_DESC_INIT);
  END(0);
}

static void print_ckpt_plan_summary(void) {
  BEGIN(ckpt_plan_summary);
  FIELD(ckpt_plan_summary, struct_size, ", ");
  FIELD(ckpt_plan_summary, strategy, ", ");
  FIELD(ckpt_plan_summary, k, ", ");
  FIELD(ckpt_plan_summary, action_count, ", ");
  FIELD(ckpt_plan_summary, hash, ", ");
  FIELD(ckpt_plan_summary, budget_bytes, ", ");
  FIELD(ckpt_plan_summary, peak_bytes, ", ");
  FIELD(ckpt_plan_summary, arena_bytes, ", ");
  FIELD(ckpt_plan_summary, held_bytes, ", ");
  FIELD(ckpt_plan_summary, forward_seconds, ", ");
  FIELD(ckpt_plan_summary, backward_seconds, ", ");
  FIELD(ckpt_plan_summary, recompute_seconds, ", ");
  FIELD(ckpt_plan_summary, recompute_count, ", ");
  FIELD(ckpt_plan_summary, minimum_budget_bytes, ", ");
  FIELD(ckpt_plan_summary, class_gap_seconds, ", ");
  FIELD(ckpt_plan_summary, universal_gap_seconds, ", ");
  FIELD(ckpt_plan_summary, plan_seconds, ", ");
  FIELD(ckpt_plan_summary, work, ", ");
  FIELD(ckpt_plan_summary, status, ", ");
  FIELD(ckpt_plan_summary, plan_class, ", ");
  FIELD(ckpt_plan_summary, placement_count, ", ");
  FIELD(ckpt_plan_summary, reserved, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_action(void) {
  BEGIN(ckpt_action);
  FIELD(ckpt_action, kind, ", ");
  FIELD(ckpt_action, index, ", ");
  FIELD(ckpt_action, slots, ", ");
  FIELD(ckpt_action, outputs, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_placement(void) {
  BEGIN(ckpt_placement);
  FIELD(ckpt_placement, what, ", ");
  FIELD(ckpt_placement, index, ", ");
  FIELD(ckpt_placement, item, ", ");
  FIELD(ckpt_placement, is_recompute, ", ");
  FIELD(ckpt_placement, first_action, ", ");
  FIELD(ckpt_placement, end_action, ", ");
  FIELD(ckpt_placement, bytes, ", ");
  FIELD(ckpt_placement, offset, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_curve_point(void) {
  BEGIN(ckpt_curve_point);
  FIELD(ckpt_curve_point, budget_bytes, ", ");
  FIELD(ckpt_curve_point, peak_bytes, ", ");
  FIELD(ckpt_curve_point, seconds, ", ");
  FIELD(ckpt_curve_point, recompute_seconds, ", ");
  FIELD(ckpt_curve_point, class_gap_seconds, ", ");
  FIELD(ckpt_curve_point, universal_gap_seconds, ", ");
  FIELD(ckpt_curve_point, status, ", ");
  FIELD(ckpt_curve_point, reserved, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_explanation(void) {
  BEGIN(ckpt_explanation);
  FIELD(ckpt_explanation, what, ", ");
  FIELD(ckpt_explanation, index, ", ");
  FIELD(ckpt_explanation, item, ", ");
  FIELD(ckpt_explanation, kept, ", ");
  FIELD(ckpt_explanation, because, ", ");
  FIELD(ckpt_explanation, reserved, ", ");
  FIELD(ckpt_explanation, bytes, ", ");
  FIELD(ckpt_explanation, seconds_change, ", ");
  FIELD(ckpt_explanation, peak_change, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_philox(void) {
  BEGIN(ckpt_philox);
  FIELD(ckpt_philox, seed, ", ");
  FIELD(ckpt_philox, subsequence, ", ");
  FIELD(ckpt_philox, offset, ", ");
  FIELD(ckpt_philox, step_word, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_schedule_action(void) {
  BEGIN(ckpt_schedule_action);
  FIELD(ckpt_schedule_action, kind, ", ");
  FIELD(ckpt_schedule_action, snapshot, ", ");
  FIELD(ckpt_schedule_action, first, ", ");
  FIELD(ckpt_schedule_action, last, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_segment_desc(void) {
  BEGIN(ckpt_segment_desc);
  FIELD(ckpt_segment_desc, struct_size, ", ");
  FIELD(ckpt_segment_desc, slot_size, ", ");
  FIELD(ckpt_segment_desc, output_size, ", ");
  FIELD(ckpt_segment_desc, flags, ", ");
  FIELD(ckpt_segment_desc, name, ", ");
  FIELD(ckpt_segment_desc, forward, ", ");
  FIELD(ckpt_segment_desc, backward, ", ");
  FIELD(ckpt_segment_desc, slots, ", ");
  FIELD(ckpt_segment_desc, outputs, ", ");
  FIELD(ckpt_segment_desc, input_flags, ", ");
  FIELD(ckpt_segment_desc, slot_count, ", ");
  FIELD(ckpt_segment_desc, output_count, ", ");
  FIELD(ckpt_segment_desc, input_count, ", ");
  FIELD(ckpt_segment_desc, reserved, ", ");
  FIELD(ckpt_segment_desc, forward_scratch_bytes, ", ");
  FIELD(ckpt_segment_desc, backward_scratch_bytes, ", ");
  FIELD(ckpt_segment_desc, save_state, ", ");
  FIELD(ckpt_segment_desc, restore_state, ", ");
  FIELD(ckpt_segment_desc, state_bytes, "");
  INIT(ckpt_segment_desc, CKPT_SEGMENT_DESC_INIT);
  END(0);
}

static void print_ckpt_watch(void) {
  BEGIN(ckpt_watch);
  FIELD(ckpt_watch, name, ", ");
  FIELD(ckpt_watch, data, ", ");
  FIELD(ckpt_watch, bytes, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_call(void) {
  BEGIN(ckpt_call);
  FIELD(ckpt_call, struct_size, ", ");
  FIELD(ckpt_call, input_count, ", ");
  FIELD(ckpt_call, user, ", ");
  FIELD(ckpt_call, release, ", ");
  FIELD(ckpt_call, inputs, ", ");
  FIELD(ckpt_call, slot_bytes, ", ");
  FIELD(ckpt_call, output_bytes, ", ");
  FIELD(ckpt_call, watch, ", ");
  FIELD(ckpt_call, watch_count, ", ");
  FIELD(ckpt_call, reserved, "");
  INIT(ckpt_call, CKPT_CALL_INIT);
  END(0);
}

static void print_ckpt_tape_desc(void) {
  BEGIN(ckpt_tape_desc);
  FIELD(ckpt_tape_desc, struct_size, ", ");
  FIELD(ckpt_tape_desc, checks, ", ");
  FIELD(ckpt_tape_desc, arena, ", ");
  FIELD(ckpt_tape_desc, budget_bytes, ", ");
  FIELD(ckpt_tape_desc, seed, ", ");
  FIELD(ckpt_tape_desc, strategy, ", ");
  FIELD(ckpt_tape_desc, strategy_k, ", ");
  FIELD(ckpt_tape_desc, keep_patterns, ", ");
  FIELD(ckpt_tape_desc, recompute_patterns, ", ");
  FIELD(ckpt_tape_desc, keep_pattern_count, ", ");
  FIELD(ckpt_tape_desc, recompute_pattern_count, ", ");
  FIELD(ckpt_tape_desc, in_flight_count, ", ");
  FIELD(ckpt_tape_desc, replan, "");
  INIT(ckpt_tape_desc, CKPT_TAPE_DESC_INIT);
  END(0);
}

static void print_ckpt_input_desc(void) {
  BEGIN(ckpt_input_desc);
  FIELD(ckpt_input_desc, struct_size, ", ");
  FIELD(ckpt_input_desc, flags, ", ");
  FIELD(ckpt_input_desc, data, ", ");
  FIELD(ckpt_input_desc, bytes, ", ");
  FIELD(ckpt_input_desc, grad, ", ");
  FIELD(ckpt_input_desc, grad_bytes, "");
  INIT(ckpt_input_desc, CKPT_INPUT_DESC_INIT);
  END(0);
}

static void print_ckpt_tape_stats(void) {
  BEGIN(ckpt_tape_stats);
  FIELD(ckpt_tape_stats, struct_size, ", ");
  FIELD(ckpt_tape_stats, strategy, ", ");
  FIELD(ckpt_tape_stats, strategy_k, ", ");
  FIELD(ckpt_tape_stats, planned, ", ");
  FIELD(ckpt_tape_stats, step, ", ");
  FIELD(ckpt_tape_stats, segment_count, ", ");
  FIELD(ckpt_tape_stats, forward_count, ", ");
  FIELD(ckpt_tape_stats, recompute_count, ", ");
  FIELD(ckpt_tape_stats, backward_done, ", ");
  FIELD(ckpt_tape_stats, skipped_count, ", ");
  FIELD(ckpt_tape_stats, thinned_count, ", ");
  FIELD(ckpt_tape_stats, plan_count, ", ");
  FIELD(ckpt_tape_stats, plan_hit_count, ", ");
  FIELD(ckpt_tape_stats, budget_bytes, ", ");
  FIELD(ckpt_tape_stats, peak_predicted_bytes, ", ");
  FIELD(ckpt_tape_stats, peak_measured_bytes, ", ");
  FIELD(ckpt_tape_stats, arena_predicted_bytes, ", ");
  FIELD(ckpt_tape_stats, arena_measured_bytes, ", ");
  FIELD(ckpt_tape_stats, held_bytes, ", ");
  FIELD(ckpt_tape_stats, minimum_budget_bytes, ", ");
  FIELD(ckpt_tape_stats, recompute_seconds, ", ");
  FIELD(ckpt_tape_stats, forward_seconds, ", ");
  FIELD(ckpt_tape_stats, backward_seconds, ", ");
  FIELD(ckpt_tape_stats, predicted_recompute_seconds, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_pack_buffer(void) {
  BEGIN(ckpt_pack_buffer);
  FIELD(ckpt_pack_buffer, lower, ", ");
  FIELD(ckpt_pack_buffer, upper, ", ");
  FIELD(ckpt_pack_buffer, bytes, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_pack_desc(void) {
  BEGIN(ckpt_pack_desc);
  FIELD(ckpt_pack_desc, struct_size, ", ");
  FIELD(ckpt_pack_desc, buffer_size, ", ");
  FIELD(ckpt_pack_desc, buffers, ", ");
  FIELD(ckpt_pack_desc, buffer_count, ", ");
  FIELD(ckpt_pack_desc, alignment_bytes, ", ");
  FIELD(ckpt_pack_desc, capacity_bytes, ", ");
  FIELD(ckpt_pack_desc, work_limit, "");
  INIT(ckpt_pack_desc, CKPT_PACK_DESC_INIT);
  END(0);
}

static void print_ckpt_pack_result(void) {
  BEGIN(ckpt_pack_result);
  FIELD(ckpt_pack_result, struct_size, ", ");
  FIELD(ckpt_pack_result, proved, ", ");
  FIELD(ckpt_pack_result, lower_bound_bytes, ", ");
  FIELD(ckpt_pack_result, height_bytes, ", ");
  FIELD(ckpt_pack_result, work, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_model_desc(void) {
  BEGIN(ckpt_model_desc);
  FIELD(ckpt_model_desc, struct_size, ", ");
  FIELD(ckpt_model_desc, activation, ", ");
  FIELD(ckpt_model_desc, attention, ", ");
  FIELD(ckpt_model_desc, flags, ", ");
  FIELD(ckpt_model_desc, element_bytes, ", ");
  FIELD(ckpt_model_desc, reserved, ", ");
  FIELD(ckpt_model_desc, layers, ", ");
  FIELD(ckpt_model_desc, hidden, ", ");
  FIELD(ckpt_model_desc, heads, ", ");
  FIELD(ckpt_model_desc, kv_heads, ", ");
  FIELD(ckpt_model_desc, head_size, ", ");
  FIELD(ckpt_model_desc, ffn, ", ");
  FIELD(ckpt_model_desc, sequence, ", ");
  FIELD(ckpt_model_desc, micro_batch, ", ");
  FIELD(ckpt_model_desc, vocabulary, "");
  INIT(ckpt_model_desc, CKPT_MODEL_DESC_INIT);
  END(0);
}

static void print_ckpt_layout_desc(void) {
  BEGIN(ckpt_layout_desc);
  FIELD(ckpt_layout_desc, struct_size, ", ");
  FIELD(ckpt_layout_desc, flags, ", ");
  FIELD(ckpt_layout_desc, tensor_parallel, ", ");
  FIELD(ckpt_layout_desc, context_parallel, ", ");
  FIELD(ckpt_layout_desc, pipeline, ", ");
  FIELD(ckpt_layout_desc, virtual_pipeline, ", ");
  FIELD(ckpt_layout_desc, micro_batches, "");
  INIT(ckpt_layout_desc, CKPT_LAYOUT_DESC_INIT);
  END(0);
}

static void print_ckpt_hardware_desc(void) {
  BEGIN(ckpt_hardware_desc);
  FIELD(ckpt_hardware_desc, struct_size, ", ");
  FIELD(ckpt_hardware_desc, reserved, ", ");
  FIELD(ckpt_hardware_desc, flops_per_second, ", ");
  FIELD(ckpt_hardware_desc, bytes_per_second, "");
  INIT(ckpt_hardware_desc, CKPT_HARDWARE_DESC_INIT);
  END(0);
}

static void print_ckpt_estimate(void) {
  BEGIN(ckpt_estimate);
  FIELD(ckpt_estimate, struct_size, ", ");
  FIELD(ckpt_estimate, policy, ", ");
  FIELD(ckpt_estimate, layer_bytes, ", ");
  FIELD(ckpt_estimate, chunk_layers, ", ");
  FIELD(ckpt_estimate, in_flight, ", ");
  FIELD(ckpt_estimate, layers_in_flight, ", ");
  FIELD(ckpt_estimate, outside_bytes, ", ");
  FIELD(ckpt_estimate, activation_bytes, ", ");
  FIELD(ckpt_estimate, peak_bytes, ", ");
  FIELD(ckpt_estimate, arena_bytes, ", ");
  FIELD(ckpt_estimate, minimum_budget_bytes, ", ");
  FIELD(ckpt_estimate, forward_flops, ", ");
  FIELD(ckpt_estimate, backward_flops, ", ");
  FIELD(ckpt_estimate, recompute_flops, ", ");
  FIELD(ckpt_estimate, replay_flops, ", ");
  FIELD(ckpt_estimate, model_flops, ", ");
  FIELD(ckpt_estimate, forward_seconds, ", ");
  FIELD(ckpt_estimate, backward_seconds, ", ");
  FIELD(ckpt_estimate, recompute_seconds, ", ");
  FIELD(ckpt_estimate, offload_bytes_per_second, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_ops_desc(void) {
  BEGIN(ckpt_ops_desc);
  FIELD(ckpt_ops_desc, struct_size, ", ");
  FIELD(ckpt_ops_desc, thread_count, ", ");
  FIELD(ckpt_ops_desc, isa, ", ");
  FIELD(ckpt_ops_desc, dtype, ", ");
  FIELD(ckpt_ops_desc, device, ", ");
  FIELD(ckpt_ops_desc, stream, "");
  INIT(ckpt_ops_desc, CKPT_OPS_DESC_INIT);
  END(0);
}

static void print_ckpt_ops_info(void) {
  BEGIN(ckpt_ops_info);
  FIELD(ckpt_ops_info, struct_size, ", ");
  FIELD(ckpt_ops_info, thread_count, ", ");
  FIELD(ckpt_ops_info, isa, ", ");
  FIELD(ckpt_ops_info, blas, ", ");
  FIELD(ckpt_ops_info, dtype, ", ");
  FIELD(ckpt_ops_info, device_kind, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_adamw_desc(void) {
  BEGIN(ckpt_adamw_desc);
  FIELD(ckpt_adamw_desc, struct_size, ", ");
  FIELD(ckpt_adamw_desc, learning_rate, ", ");
  FIELD(ckpt_adamw_desc, beta1, ", ");
  FIELD(ckpt_adamw_desc, beta2, ", ");
  FIELD(ckpt_adamw_desc, epsilon, ", ");
  FIELD(ckpt_adamw_desc, weight_decay, ", ");
  FIELD(ckpt_adamw_desc, max_norm, ", ");
  FIELD(ckpt_adamw_desc, grad_scale, ", ");
  FIELD(ckpt_adamw_desc, step, ", ");
  FIELD(ckpt_adamw_desc, master_weights, "");
  INIT(ckpt_adamw_desc, CKPT_ADAMW_DESC_INIT);
  END(0);
}

static void print_ckpt_tensor_info(void) {
  BEGIN(ckpt_tensor_info);
  FIELD(ckpt_tensor_info, struct_size, ", ");
  FIELD(ckpt_tensor_info, decays, ", ");
  FIELD(ckpt_tensor_info, offset, ", ");
  FIELD(ckpt_tensor_info, count, ", ");
  FIELD(ckpt_tensor_info, rows, ", ");
  FIELD(ckpt_tensor_info, columns, ", ");
  FIELD(ckpt_tensor_info, init_mean, ", ");
  FIELD(ckpt_tensor_info, init_stddev, ", ");
  FIELD(ckpt_tensor_info, name, "");
  NO_INIT();
  END(0);
}

static void print_ckpt_layer_embedding_desc(void) {
  BEGIN(ckpt_layer_embedding_desc);
  FIELD(ckpt_layer_embedding_desc, struct_size, ", ");
  FIELD(ckpt_layer_embedding_desc, dropout_probability, ", ");
  FIELD(ckpt_layer_embedding_desc, batch, ", ");
  FIELD(ckpt_layer_embedding_desc, sequence, ", ");
  FIELD(ckpt_layer_embedding_desc, channels, ", ");
  FIELD(ckpt_layer_embedding_desc, vocabulary, "");
  INIT(ckpt_layer_embedding_desc, CKPT_LAYER_EMBEDDING_DESC_INIT);
  END(0);
}

static void print_ckpt_layer_block_desc(void) {
  BEGIN(ckpt_layer_block_desc);
  FIELD(ckpt_layer_block_desc, struct_size, ", ");
  FIELD(ckpt_layer_block_desc, attention, ", ");
  FIELD(ckpt_layer_block_desc, batch, ", ");
  FIELD(ckpt_layer_block_desc, sequence, ", ");
  FIELD(ckpt_layer_block_desc, channels, ", ");
  FIELD(ckpt_layer_block_desc, heads, ", ");
  FIELD(ckpt_layer_block_desc, hidden, ", ");
  FIELD(ckpt_layer_block_desc, dropout_probability, ", ");
  FIELD(ckpt_layer_block_desc, attention_dropout_probability, ", ");
  FIELD(ckpt_layer_block_desc, epsilon, ", ");
  FIELD(ckpt_layer_block_desc, residual_stddev, "");
  INIT(ckpt_layer_block_desc, CKPT_LAYER_BLOCK_DESC_INIT);
  END(0);
}

static void print_ckpt_layer_head_desc(void) {
  BEGIN(ckpt_layer_head_desc);
  FIELD(ckpt_layer_head_desc, struct_size, ", ");
  FIELD(ckpt_layer_head_desc, tied, ", ");
  FIELD(ckpt_layer_head_desc, rows, ", ");
  FIELD(ckpt_layer_head_desc, channels, ", ");
  FIELD(ckpt_layer_head_desc, vocabulary, ", ");
  FIELD(ckpt_layer_head_desc, chunk_rows, ", ");
  FIELD(ckpt_layer_head_desc, loss, ", ");
  FIELD(ckpt_layer_head_desc, ignore_index, ", ");
  FIELD(ckpt_layer_head_desc, epsilon, "");
  INIT(ckpt_layer_head_desc, CKPT_LAYER_HEAD_DESC_INIT);
  END(0);
}

static void print_ckpt_gpt_desc(void) {
  BEGIN(ckpt_gpt_desc);
  FIELD(ckpt_gpt_desc, struct_size, ", ");
  FIELD(ckpt_gpt_desc, attention, ", ");
  FIELD(ckpt_gpt_desc, layers, ", ");
  FIELD(ckpt_gpt_desc, heads, ", ");
  FIELD(ckpt_gpt_desc, channels, ", ");
  FIELD(ckpt_gpt_desc, sequence, ", ");
  FIELD(ckpt_gpt_desc, batch, ", ");
  FIELD(ckpt_gpt_desc, vocabulary, ", ");
  FIELD(ckpt_gpt_desc, head_chunk_rows, ", ");
  FIELD(ckpt_gpt_desc, dropout_probability, ", ");
  FIELD(ckpt_gpt_desc, untied, "");
  INIT(ckpt_gpt_desc, CKPT_GPT_DESC_INIT);
  END(1);
}

int main(void) {
  printf("{\"structs\": {\n");
  print_ckpt_device_info();
  print_ckpt_arena_desc();
  print_ckpt_arena_stats();
  print_ckpt_slot();
  print_ckpt_output();
  print_ckpt_chain_segment();
  print_ckpt_chain_input();
  print_ckpt_chain_desc();
  print_ckpt_plan_desc();
  print_ckpt_plan_summary();
  print_ckpt_action();
  print_ckpt_placement();
  print_ckpt_curve_point();
  print_ckpt_explanation();
  print_ckpt_philox();
  print_ckpt_schedule_action();
  print_ckpt_segment_desc();
  print_ckpt_watch();
  print_ckpt_call();
  print_ckpt_tape_desc();
  print_ckpt_input_desc();
  print_ckpt_tape_stats();
  print_ckpt_pack_buffer();
  print_ckpt_pack_desc();
  print_ckpt_pack_result();
  print_ckpt_model_desc();
  print_ckpt_layout_desc();
  print_ckpt_hardware_desc();
  print_ckpt_estimate();
  print_ckpt_ops_desc();
  print_ckpt_ops_info();
  print_ckpt_adamw_desc();
  print_ckpt_tensor_info();
  print_ckpt_layer_embedding_desc();
  print_ckpt_layer_block_desc();
  print_ckpt_layer_head_desc();
  print_ckpt_gpt_desc();
  printf("},\n\"constants\": {\n");
  VALUE(CKPT_VERSION_MAJOR, 0);
  VALUE(CKPT_VERSION_MINOR, 0);
  VALUE(CKPT_VERSION_PATCH, 0);
  VALUE(CKPT_OK, 0);
  VALUE(CKPT_ERROR_INVALID_ARGUMENT, 0);
  VALUE(CKPT_ERROR_STRUCT_SIZE, 0);
  VALUE(CKPT_ERROR_OUT_OF_MEMORY, 0);
  VALUE(CKPT_ERROR_BUDGET, 0);
  VALUE(CKPT_ERROR_BUSY, 0);
  VALUE(CKPT_ERROR_STALE, 0);
  VALUE(CKPT_ERROR_STATE, 0);
  VALUE(CKPT_ERROR_NOT_FILLED, 0);
  VALUE(CKPT_ERROR_CHECK, 0);
  VALUE(CKPT_ERROR_OVERFLOW, 0);
  VALUE(CKPT_ERROR_NOT_FOUND, 0);
  VALUE(CKPT_ERROR_CONFLICT, 0);
  VALUE(CKPT_ERROR_DEVICE, 0);
  VALUE(CKPT_ERROR_CAPTURE, 0);
  VALUE(CKPT_ERROR_UNSUPPORTED, 0);
  VALUE(CKPT_ERROR_INVALID_PLAN, 0);
  VALUE(CKPT_ERROR_INTERNAL, 0);
  VALUE(CKPT_DEVICE_KIND_CPU, 0);
  VALUE(CKPT_DEVICE_KIND_CUDA, 0);
  VALUE(CKPT_COPY_HOST_TO_DEVICE, 0);
  VALUE(CKPT_COPY_DEVICE_TO_HOST, 0);
  VALUE(CKPT_COPY_DEVICE_TO_DEVICE, 0);
  VALUE(CKPT_ARENA_GUARD, 0);
  VALUE(CKPT_ARENA_POISON, 0);
  VALUE(CKPT_ARENA_PLAIN, 0);
  VALUE(CKPT_ARENA_HIGH, 0);
  VALUE(CKPT_SLOT_TRANSIENT, 0);
  VALUE(CKPT_SLOT_KEEP, 0);
  VALUE(CKPT_SLOT_RECOMPUTE, 0);
  VALUE(CKPT_SLOT_COST_GIVEN, 0);
  VALUE(CKPT_SLOT_CONSUMED, 0);
  VALUE(CKPT_SLOT_ALONE, 0);
  VALUE(CKPT_OUTPUT_NO_GRAD, 0);
  VALUE(CKPT_OUTPUT_KEEP, 0);
  VALUE(CKPT_OUTPUT_BACKWARD_READS, 0);
  VALUE(CKPT_OUTPUT_COST_GIVEN, 0);
  VALUE(CKPT_INPUT_BACKWARD_IGNORES, 0);
  VALUE(CKPT_INPUT_NO_GRAD, 0);
  VALUE(CKPT_INPUT_GRAD_OVER_OUTPUT_0, 0);
  VALUE(CKPT_STRATEGY_AUTO, 0);
  VALUE(CKPT_STRATEGY_STORE_ALL, 0);
  VALUE(CKPT_STRATEGY_EVERY_SEGMENT, 0);
  VALUE(CKPT_STRATEGY_SQRT, 0);
  VALUE(CKPT_STRATEGY_UNIFORM, 0);
  VALUE(CKPT_STRATEGY_BLOCK, 0);
  VALUE(CKPT_STRATEGY_FULL, 0);
  VALUE(CKPT_STRATEGY_SELECTIVE, 0);
  VALUE(CKPT_MEMORY_ARENA, 0);
  VALUE(CKPT_MEMORY_CALLER, 0);
  VALUE(CKPT_GRAD_NONE, 0);
  VALUE(CKPT_GRAD_ARENA, 0);
  VALUE(CKPT_GRAD_CALLER, 0);
  VALUE(CKPT_CHAIN_SEGMENT_WHOLE, 0);
  VALUE(CKPT_CHAIN_SEGMENT_SAVED_HOLDS_INPUT, 0);
  VALUE(CKPT_CLASS_DEFAULT, 0);
  VALUE(CKPT_CLASS_ROTOR, 0);
  VALUE(CKPT_CLASS_SIGMA, 0);
  VALUE(CKPT_CLASS_SIGMA_S_W, 0);
  VALUE(CKPT_CLASS_SIGMA_S_W_D, 0);
  VALUE(CKPT_PLAN_OPTIMAL, 0);
  VALUE(CKPT_PLAN_GAP, 0);
  VALUE(CKPT_ACTION_FORWARD, 0);
  VALUE(CKPT_ACTION_BACKWARD, 0);
  VALUE(CKPT_ACTION_FREE, 0);
  VALUE(CKPT_ACTION_DROP, 0);
  VALUE(CKPT_PLAN_MASK_WORDS, 0);
  VALUE(CKPT_PLACED_SLOT, 0);
  VALUE(CKPT_PLACED_OUTPUT, 0);
  VALUE(CKPT_PLACED_INPUT, 0);
  VALUE(CKPT_PLACED_GRAD, 0);
  VALUE(CKPT_PLACED_SCRATCH, 0);
  VALUE(CKPT_BECAUSE_MARKED, 0);
  VALUE(CKPT_BECAUSE_UNUSED, 0);
  VALUE(CKPT_BECAUSE_ALREADY, 0);
  VALUE(CKPT_BECAUSE_FASTER, 0);
  VALUE(CKPT_BECAUSE_BUDGET, 0);
  VALUE(CKPT_BECAUSE_NO_GAIN, 0);
  VALUE(CKPT_BECAUSE_SEARCH, 0);
  VALUE(CKPT_SCHEDULE_DONE, 0);
  VALUE(CKPT_SCHEDULE_STORE, 0);
  VALUE(CKPT_SCHEDULE_RESTORE, 0);
  VALUE(CKPT_SCHEDULE_ADVANCE, 0);
  VALUE(CKPT_SCHEDULE_BACKWARD, 0);
  VALUE(CKPT_CHECK_DETERMINISM, 0);
  VALUE(CKPT_CHECK_RECOMPUTE, 0);
  VALUE(CKPT_CHECK_INPUTS, 0);
  VALUE(CKPT_REPLAN_AUTO, 0);
  VALUE(CKPT_REPLAN_NEVER, 0);
  VALUE(CKPT_TAPE_DRY, 0);
  VALUE(CKPT_TAPE_NO_BACKWARD, 0);
  VALUE(CKPT_TAPE_INPUT_ACCUMULATE, 0);
  VALUE(CKPT_BACKWARD_RETAIN, 0);
  VALUE(CKPT_FRAME_SLOT, 0);
  VALUE(CKPT_FRAME_OUTPUT, 0);
  VALUE(CKPT_FRAME_INPUT, 0);
  VALUE(CKPT_FRAME_OUTPUT_GRAD, 0);
  VALUE(CKPT_FRAME_INPUT_GRAD, 0);
  VALUE(CKPT_FRAME_SCRATCH, 0);
  VALUE(CKPT_MODEL_GELU, 0);
  VALUE(CKPT_MODEL_SWIGLU, 0);
  VALUE(CKPT_MODEL_PLAIN_ATTENTION, 0);
  VALUE(CKPT_MODEL_FLASH_ATTENTION, 0);
  VALUE(CKPT_MODEL_DROPOUT, 0);
  VALUE(CKPT_LAYOUT_SEQUENCE_PARALLEL, 0);
  VALUE(CKPT_RECOMPUTE_NONE, 0);
  VALUE(CKPT_RECOMPUTE_ATTENTION, 0);
  VALUE(CKPT_RECOMPUTE_FEED_FORWARD, 0);
  VALUE(CKPT_RECOMPUTE_FULL, 0);
  VALUE(CKPT_RECOMPUTE_OPTIMAL, 0);
  VALUE(CKPT_ISA_BEST, 0);
  VALUE(CKPT_ISA_GENERIC, 0);
  VALUE(CKPT_ISA_AVX2, 0);
  VALUE(CKPT_ISA_AVX512, 0);
  VALUE(CKPT_DTYPE_FLOAT32, 0);
  VALUE(CKPT_DTYPE_BFLOAT16, 0);
  VALUE(CKPT_DTYPE_FLOAT16, 0);
  VALUE(CKPT_ATTENTION_PLAIN, 0);
  VALUE(CKPT_ATTENTION_TILED, 0);
  VALUE(CKPT_LAYER_EVALUATE, 1);
  printf("}}\n");
  return 0;
}
