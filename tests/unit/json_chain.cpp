// Chains as JSON: what a text means, what is refused and in which words, and that what goes out comes back the same.
#include <gtest/gtest.h>

#include <cstring>

#include "ckpt/json.h"
#include "json/chain_file.h"
#include "plan/handles.h"
#include "support/plan_random.h"

namespace ckpt::json {
namespace {

// The example of the header, with one part replaced.
std::string example(const std::string &part = "", const std::string &by = "") {
  std::string text = R"({ "input": {"bytes": 4000, "memory": "arena", "grad": "none"},
    "output": {"memory": "arena", "grad": "caller"},
    "segments": [
      { "name": "block0", "forward_seconds": 1.0, "backward_seconds": 2.0, "output_bytes": 4096,
        "slots": [ {"name": "qkv", "bytes": 12288, "cost_seconds": 0.25, "reads": [], "flags": ["transient"]},
                   {"name": "act", "bytes": 16384, "cost_seconds": 0.125, "reads": ["qkv"]} ],
        "output_reads": ["act"], "forward_scratch_bytes": 5, "backward_scratch_bytes": 7, "backward_reads": ["input"] },
      { "name": "block1", "forward_seconds": 3, "backward_seconds": 4, "output_bytes": 1, "saved_bytes": 9 } ] })";
  if (part.empty()) return text;
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  if (at != std::string::npos) text.replace(at, part.size(), by);
  return text;
}

ReadChain read(const std::string &text, size_t alignment = 1) {
  ReadChain c;
  EXPECT_EQ(read_chain(text, "c.json", alignment, &c), CKPT_OK) << last_error();
  return c;
}

void refused(const std::string &text, const std::string &line) {
  ReadChain c;
  EXPECT_NE(read_chain(text, "c.json", 1, &c), CKPT_OK) << text;
  EXPECT_EQ(std::string(last_error()), line) << text;
}
void refused_with(const std::string &part, const std::string &by, const std::string &line) { refused(example(part, by), line); }

TEST(JsonChain, SaysWhatTheTextSays) {
  const ReadChain c = read(example());
  const plan::Graph &g = c.graph;
  ASSERT_EQ(g.node_count(), 2u);
  ASSERT_EQ(g.value_count(), 3u);
  EXPECT_EQ(g.rule.alignment_bytes, 1u);
  EXPECT_EQ(g.values[0].bytes, 4000u);
  EXPECT_FALSE(g.values[0].caller);
  EXPECT_EQ(g.values[0].grad, CKPT_GRAD_NONE);
  EXPECT_FALSE(g.root_grads_in_arena);
  const plan::Shape &s = *g.nodes[0].shape;
  EXPECT_EQ(s.name(), "block0");
  ASSERT_EQ(s.slot_count(), 2u);
  EXPECT_EQ(s.item(0).flags, uint32_t{CKPT_SLOT_TRANSIENT});
  EXPECT_TRUE(s.item(0).reads.empty());
  EXPECT_EQ(s.item(1).reads, Bits::one(0));
  EXPECT_EQ(s.item(2).reads, Bits::one(1));
  EXPECT_EQ(s.item(2).name, "output");
  EXPECT_DOUBLE_EQ(g.seconds_of(0, 2), 0.625);
  EXPECT_EQ(s.forward_scratch(), 5u);
  EXPECT_EQ(s.backward_scratch(), 7u);
  EXPECT_TRUE(s.backward_reads_input(0));
  EXPECT_EQ(g.nodes[0].backward_seconds, 2.0);
  const plan::Shape &whole = *g.nodes[1].shape;
  EXPECT_TRUE(whole.whole());
  ASSERT_EQ(whole.slot_count(), 1u);
  EXPECT_EQ(g.bytes_of(1, 0), 9u);
  EXPECT_EQ(g.seconds_of(1, 1), 3.0);
  ASSERT_EQ(c.roots.size(), 1u);
  EXPECT_EQ(c.roots[0].value, 2u);
}

TEST(JsonChain, DefaultsAreTheSafeCase) {
  const ReadChain c = read(R"({"input":{"bytes":8},"segments":[{"name":"a","forward_seconds":1,"backward_seconds":1,"output_bytes":3,
      "slots":[{"name":"x","bytes":1,"cost_seconds":0},{"name":"y","bytes":1,"cost_seconds":0}]}]})", 0);
  const plan::Graph &g = c.graph;
  EXPECT_EQ(g.rule.alignment_bytes, 256u);
  EXPECT_FALSE(g.values[0].caller);
  EXPECT_EQ(g.values[0].grad, CKPT_GRAD_NONE);
  EXPECT_EQ(g.values[0].grad_bytes, 8u);
  const plan::Shape &s = *g.nodes[0].shape;
  EXPECT_EQ(s.item(1).reads, Bits::one(0));
  EXPECT_EQ(s.item(2).reads, Bits::first(2));
  EXPECT_EQ(s.needed(), Bits::first(2));
  EXPECT_TRUE(s.backward_reads_input(0));
  EXPECT_TRUE(s.backward_outputs().empty());
  EXPECT_TRUE(s.replayable());
  EXPECT_FALSE(s.whole());
  EXPECT_FALSE(s.saved_holds_input());
}

TEST(JsonChain, EveryFlagAndMemory) {
  const ReadChain c = read(R"({"input":{"bytes":8,"grad_bytes":4,"memory":"caller","grad":"arena"},"output":{"memory":"caller","grad":"arena","grad_bytes":2},
    "segments":[{"name":"a","forward_seconds":1,"backward_seconds":1,"output_bytes":3,"grad_bytes":6,"backward_reads":["output"],"output_reads":[],
      "slots":[{"name":"k","bytes":1,"cost_seconds":0,"flags":["keep","consumed"]},{"name":"r","bytes":1,"cost_seconds":0,"flags":["recompute"]},
               {"name":"g","bytes":1,"cost_seconds":0.5,"group":7,"alone":true},{"name":"h","bytes":1,"cost_seconds":0,"group":7}]},
     {"name":"b","forward_seconds":1,"backward_seconds":1,"output_bytes":3,"slots":[],"backward_reads":["input","output"],"replayable":false},
     {"name":"c","forward_seconds":1,"backward_seconds":1,"output_bytes":3,"saved_bytes":10,"saved_holds_input":true}]})");
  const plan::Graph &g = c.graph;
  EXPECT_TRUE(g.values[0].caller);
  EXPECT_EQ(g.values[0].grad, CKPT_GRAD_ARENA);
  EXPECT_EQ(g.values[0].grad_bytes, 4u);
  EXPECT_EQ(g.values[1].grad_bytes, 6u);
  EXPECT_EQ(g.values[3].grad_bytes, 2u);
  EXPECT_TRUE(g.values[3].caller);
  EXPECT_FALSE(g.values[1].caller);
  EXPECT_TRUE(g.root_grads_in_arena);
  const plan::Shape &a = *g.nodes[0].shape;
  EXPECT_EQ(a.item(0).flags, uint32_t{CKPT_SLOT_KEEP | CKPT_SLOT_CONSUMED});
  EXPECT_EQ(a.again(), Bits::one(1));
  EXPECT_EQ(a.item(2).flags, uint32_t{CKPT_SLOT_ALONE});
  EXPECT_EQ(a.item(3).group, 7u);
  EXPECT_TRUE(a.item(4).reads.empty());
  EXPECT_FALSE(a.backward_reads_input(0));
  EXPECT_EQ(a.backward_outputs(), Bits::one(4));
  EXPECT_TRUE(g.nodes[1].shape->backward_reads_input(0));
  EXPECT_FALSE(g.nodes[1].shape->replayable());
  EXPECT_TRUE(g.nodes[2].shape->saved_holds_input());
  EXPECT_EQ(g.bytes_of(2, 0), 7u);  // without the input's 3
}

TEST(JsonChain, GraphsNameTheirBoundaries) {
  const ReadChain c = read(R"({"inputs":[{"bytes":8,"name":"x"},{"bytes":9}],"segments":[
    {"name":"a","forward_seconds":3,"backward_seconds":1,"slots":[],"inputs":["x",1],
     "outputs":[{"name":"o","bytes":5,"cost_seconds":1},{"name":"m","bytes":6,"flags":["no_grad","keep"]},{"name":"p","bytes":9,"memory":"arena","in_place_input":1}]},
    {"name":"b","forward_seconds":1,"backward_seconds":1,"slots":[],"output_bytes":1},
    {"name":"c","forward_seconds":1,"backward_seconds":1,"slots":[],"output_bytes":1,"inputs":["b","a","a/m",{"boundary":"x","flags":["backward_ignores","no_grad"]},{"boundary":4,"flags":[]}]}]})");
  const plan::Graph &g = c.graph;
  ASSERT_EQ(g.value_count(), 7u);
  EXPECT_EQ(std::vector<uint32_t>(g.inputs_of(0).begin(), g.inputs_of(0).end()), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(std::vector<uint32_t>(g.inputs_of(1).begin(), g.inputs_of(1).end()), (std::vector<uint32_t>{2}));
  EXPECT_EQ(std::vector<uint32_t>(g.inputs_of(2).begin(), g.inputs_of(2).end()), (std::vector<uint32_t>{5, 2, 3, 0, 4}));
  EXPECT_EQ(g.nodes[2].shape->input_flags(3), uint32_t{CKPT_INPUT_BACKWARD_IGNORES | CKPT_INPUT_NO_GRAD});
  EXPECT_EQ(g.seconds_of(0, 0), 1.0);
  EXPECT_EQ(g.seconds_of(0, 1), 2.0);
  EXPECT_EQ(g.seconds_of(0, 2), 0.0);
  EXPECT_EQ(g.nodes[0].shape->item(2).in_place_input, 2u);
  EXPECT_EQ(g.values[3].grad, CKPT_GRAD_NONE);
}

TEST(JsonChain, RefusesWrongNumbers) {
  const std::string bytes = ", expected a whole number of bytes, 0 to 2^60", seconds = ", expected a number of seconds, 0 to 1e18";
  refused_with("\"bytes\": 16384", "\"bytes\": -1", "c.json: segments[0].slots[1].bytes is -1" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": 1.5", "c.json: segments[0].slots[1].bytes is 1.5" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": 1e30", "c.json: segments[0].slots[1].bytes is 1e30" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": 1152921504606846977", "c.json: segments[0].slots[1].bytes is 1152921504606846977" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": 99999999999999999999999", "c.json: segments[0].slots[1].bytes is 99999999999999999999999" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": \"16384\"", "c.json: segments[0].slots[1].bytes is '16384'" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": null", "c.json: segments[0].slots[1].bytes is null" + bytes);
  refused_with("\"bytes\": 16384", "\"bytes\": 1e400", "c.json: segments[0].slots[1].bytes is '1e400', expected a number of at most 1.8e308");
  refused_with("\"bytes\": 4000", "\"bytes\": []", "c.json: input.bytes is an empty list" + bytes);
  refused_with("\"saved_bytes\": 9", "\"saved_bytes\": -9", "c.json: segments[1].saved_bytes is -9" + bytes);
  refused_with("\"forward_seconds\": 1.0", "\"forward_seconds\": -0.5", "c.json: segments[0].forward_seconds is -0.5" + seconds);
  refused_with("\"forward_seconds\": 1.0", "\"forward_seconds\": 1e300", "c.json: segments[0].forward_seconds is 1e300" + seconds);
  refused_with("\"forward_seconds\": 1.0", "\"forward_seconds\": true", "c.json: segments[0].forward_seconds is true" + seconds);
  refused_with("\"forward_seconds\": 1.0", "\"forward_seconds\": 0.3", "c.json: segments[0].forward_seconds is 0.3, expected at least the 0.375 that cost_seconds of its slots and outputs are together");
  refused_with("\"output_bytes\": 4096", "\"output_bytes\": 1152921504606846976, \"forward_scratch_bytes\": 1152921504606846976",
               "c.json: segments[0]: field 'forward_scratch_bytes' comes twice, expected once");
}

TEST(JsonChain, RefusesWhatIsNoJson) {
  refused_with("\"forward_seconds\": 1.0", "\"forward_seconds\": NaN", "c.json: line 4, column 46: segments[0].forward_seconds: found 'NaN', expected valid JSON (numbers are finite)");
  refused_with("\"forward_seconds\": 1.0", "\"forward_seconds\": -Infinity", "c.json: line 4, column 46: segments[0].forward_seconds: found '-Infinity', expected valid JSON (numbers are finite)");
  refused("", "c.json: line 1, column 1: the text: the text ends, expected the rest of it");
  refused("{\"input\": {\"bytes\": 4", "c.json: line 1, column 21: input: the text ends, expected the rest of it");
  const std::string text = example();
  for (size_t n = 0; n < text.size(); ++n) {  // cut off anywhere
    ReadChain c;
    EXPECT_EQ(read_chain(std::string_view(text).substr(0, n), "c.json", 1, &c), CKPT_ERROR_INVALID_ARGUMENT) << n;
    EXPECT_EQ(std::string(last_error()).compare(0, 8, "c.json: "), 0) << last_error();
  }
  std::string deep = "{\"input\": ";
  deep.append(100000, '[');
  refused(deep, "c.json: input" + [] {
    std::string path;
    for (int k = 0; k < 31; ++k) path += "[0]";
    return path;
  }() + ": lists and objects within each other more than 32 levels deep, expected at most 32");
  refused(example() + "x", "c.json: line 8, column 113: the text: found 'x', expected valid JSON (numbers are finite)");
  refused_with("\"block0\"", "\"\xff\"", "c.json: line 4, column 18: segments[0].name: found '?', expected valid JSON (numbers are finite)");
}

TEST(JsonChain, RefusesMissingFields) {
  refused_with("\"input\": {\"bytes\": 4000, \"memory\": \"arena\", \"grad\": \"none\"},", "", "c.json: input is missing, expected an object with bytes (or a list `inputs` of several)");
  refused_with("\"bytes\": 4000, ", "", "c.json: input.bytes is missing, expected a whole number of bytes, 0 to 2^60");
  refused_with("\"name\": \"block0\",", "", "c.json: segments[0].name is missing, expected a name");
  refused_with("\"forward_seconds\": 1.0,", "", "c.json: segments[0].forward_seconds is missing, expected a number of seconds, 0 to 1e18");
  refused_with("\"backward_seconds\": 4,", "", "c.json: segments[1].backward_seconds is missing, expected a number of seconds, 0 to 1e18");
  refused_with("\"output_bytes\": 1,", "", "c.json: segments[1].output_bytes is missing, expected a whole number of bytes, 0 to 2^60");
  refused_with(", \"saved_bytes\": 9", "", "c.json: segments[1].slots is missing, expected a list of slots (or saved_bytes)");
  refused_with("\"name\": \"qkv\", ", "", "c.json: segments[0].slots[0].name is missing, expected a name");
  refused_with("\"bytes\": 12288, ", "", "c.json: segments[0].slots[0].bytes is missing, expected a whole number of bytes, 0 to 2^60");
  refused_with("\"cost_seconds\": 0.25, ", "", "c.json: segments[0].slots[0].cost_seconds is missing, expected a number of seconds, 0 to 1e18");
  refused("{\"input\": {\"bytes\": 1}}", "c.json: segments is missing, expected a list of at least one segment");
}

TEST(JsonChain, RefusesWrongNamesListsAndFlags) {
  refused_with("\"flags\": [\"transient\"]", "\"flags\": [\"fleeting\"]", "c.json: segments[0].slots[0].flags[0] is 'fleeting', expected one of transient, keep, recompute, cost_given, consumed");
  refused_with("\"flags\": [\"transient\"]", "\"flags\": \"transient\"", "c.json: segments[0].slots[0].flags is 'transient', expected a list of names from transient, keep, recompute, cost_given, consumed");
  refused_with("\"flags\": [\"transient\"]", "\"flags\": [\"keep\", \"recompute\"]", "c.json: segments[0].slots[0].flags has keep and recompute, expected at most one of them");
  refused_with("\"reads\": [\"qkv\"]", "\"reads\": [\"act\"]", "c.json: segments[0].slots[1].reads[0] is 'act', expected the name of an earlier slot of the same segment");
  refused_with("\"reads\": []", "\"reads\": [\"act\"]", "c.json: segments[0].slots[0].reads[0] is 'act', expected the name of an earlier slot of the same segment");
  refused_with("\"reads\": [\"qkv\"]", "\"reads\": [0]", "c.json: segments[0].slots[1].reads[0] is 0, expected the name of an earlier slot of the same segment");
  refused_with("\"reads\": [\"qkv\"]", "\"reads\": [\"qkv\", \"qkv\"]", "c.json: segments[0].slots[1].reads[1] is 'qkv', expected each slot once");
  refused_with("\"output_reads\": [\"act\"]", "\"output_reads\": [\"nothing\"]", "c.json: segments[0].output_reads[0] is 'nothing', expected the name of an earlier slot of the same segment");
  refused_with("\"name\": \"act\"", "\"name\": \"qkv\"", "c.json: segments[0].slots[1].name is 'qkv', expected a name that no other slot of the segment has");
  refused_with("\"block1\"", "\"block0\"", "c.json: segments[1].name is 'block0', expected a name that no other segment has (or names_repeat: true)");
  refused_with("\"block1\"", "\"\"", "c.json: segments[1].name is '', expected a name");
  refused_with("\"block1\"", "\"a\\u0000b\"", std::string("c.json: segments[1].name is 'a?b', expected a name"));
  refused_with("\"saved_bytes\": 9", "\"saved_bytes\": 9, \"speed\": 1", "c.json: segments[1]: unknown field 'speed' (its value is 1), expected name, forward_seconds, backward_seconds, output_bytes, grad_bytes, slots, saved_bytes, "
               "output_reads, outputs, inputs, forward_scratch_bytes, backward_scratch_bytes, backward_reads, saved_holds_input, whole, replayable");
  refused_with("\"saved_bytes\": 9", "\"saved_bytes\": 9, \"slots\": []", "c.json: segments[1].saved_bytes is 9, expected either slots or saved_bytes, not both");
  refused_with("\"memory\": \"arena\", \"grad\": \"none\"", "\"memory\": \"disk\"", "c.json: input.memory is 'disk', expected one of arena, caller");
  refused_with("\"grad\": \"caller\"", "\"grad\": \"none\"", "c.json: output.grad is 'none', expected one of arena, caller");
  refused_with("\"backward_reads\": [\"input\"]", "\"backward_reads\": [\"weights\"]", "c.json: segments[0].backward_reads[0] is 'weights', expected one of input, output");
  refused_with("\"output_reads\": [\"act\"]", "\"output_reads\": [\"act\"], \"inputs\": [1]", "c.json: segments[0].inputs[0] is 1, expected a boundary that is made before (a number below 1, or its name)");
  refused_with("\"output_reads\": [\"act\"]", "\"output_reads\": [\"act\"], \"inputs\": [\"block1\"]", "c.json: segments[0].inputs[0] is 'block1', expected a boundary that is made before (a number below 1, or its name)");
  refused("{\"input\": {\"bytes\": 1}, \"segments\": []}", "c.json: segments is an empty list, expected a list of at least one segment");
  refused("{\"input\": {\"bytes\": 1}, \"segments\": {}}", "c.json: segments is an object, expected a list of at least one segment");
  refused("[1]", "c.json: the text is a list, expected an object");
  refused_with("\"reads\": [\"qkv\"]}", "\"reads\": [\"qkv\"], \"flags\": [\"transient\"]}, {\"name\": \"z\", \"bytes\": 0, \"cost_seconds\": 0, \"flags\": [\"transient\"]}",
               "c.json: segment 'block0': slot 'z' is TRANSIENT and neither an output nor a needed slot reads it");
}

// Names from outside stay on one line, and are cut.
TEST(JsonChain, TextsOfErrorsAreOneLine) {
  ReadChain c;
  EXPECT_NE(read_chain(example("\"act\", \"bytes\": 16384", "\"a\\nb\", \"bytes\": 16384"), "c.json", 1, &c), CKPT_OK);
  EXPECT_NE(read_chain(example("\"arena\", \"grad\": \"none\"", "\"" + std::string(5000, 'x') + "\""), "c.json", 1, &c), CKPT_OK);
  EXPECT_LT(std::string(last_error()).size(), 200u);
  EXPECT_EQ(std::string(last_error()).find('\n'), std::string::npos);
}

// Everything that a hash covers, and the costs, of any graph.
TEST(JsonChain, GoesOutAndComesBack) {
  for (uint64_t seed = 1; seed <= 3000 / plan_test::kSlow; ++seed) {
    plan_test::Genes genes = plan_test::Genes::endless(seed);
    const plan_test::RandomGraph r = plan_test::random_graph(&genes);
    std::string text;
    ASSERT_EQ(write_chain("test", r.graph, r.roots, &text), CKPT_OK) << last_error();
    ReadChain back;
    ASSERT_EQ(read_chain(text, "c.json", 0, &back), CKPT_OK) << last_error() << "\n" << text;
    ASSERT_EQ(back.graph.hash(), r.graph.hash()) << seed << "\n" << text;
    ASSERT_EQ(back.graph.item_seconds.size(), r.graph.item_seconds.size());
    for (size_t k = 0; k < r.graph.item_seconds.size(); ++k) ASSERT_NEAR(back.graph.item_seconds[k], r.graph.item_seconds[k], 1e-12) << seed << "\n" << text;
    for (uint32_t i = 0; i < r.graph.node_count(); ++i) ASSERT_EQ(back.graph.nodes[i].backward_seconds, r.graph.nodes[i].backward_seconds);
    ASSERT_EQ(back.roots.size(), r.roots.size());
    for (size_t k = 0; k < r.roots.size(); ++k) ASSERT_TRUE(back.roots[k].value == r.roots[k].value && back.roots[k].has_grad == r.roots[k].has_grad);
    std::string again;
    ASSERT_EQ(write_chain("test", back.graph, back.roots, &again), CKPT_OK);
    ASSERT_EQ(again, text);
  }
}

// Inputs that a recording names after its first segments; segments of equal names; a slot that holds the input.
TEST(JsonChain, RecordedChainsComeBack) {
  const std::string texts[] = {
      R"({"names_repeat":true,"inputs":[{"bytes":8},{"bytes":9,"before_segment":1},{"bytes":10,"before_segment":1},{"bytes":11,"before_segment":3}],"segments":[
        {"name":"a","forward_seconds":1,"backward_seconds":1,"slots":[],"output_bytes":1},
        {"name":"a","forward_seconds":1,"backward_seconds":1,"slots":[],"output_bytes":2,"inputs":[1,2,3]},
        {"name":"a","forward_seconds":1,"backward_seconds":1,"slots":[],"output_bytes":3}],"roots":[{"boundary":5,"grad":false}]})",
      R"({"input":{"bytes":8},"guard_bytes":512,"segments":[{"name":"a","forward_seconds":1,"backward_seconds":1,"saved_bytes":20,"saved_holds_input":true,"output_bytes":1}]})"};
  for (const std::string &text : texts) {
    const ReadChain c = read(text, 64);
    std::string out;
    ASSERT_EQ(write_chain("test", c.graph, c.roots, &out), CKPT_OK);
    const ReadChain back = read(out, 0);
    EXPECT_EQ(back.graph.hash(), c.graph.hash()) << out;
    EXPECT_EQ(back.graph.rule.alignment_bytes, 64u);
    EXPECT_EQ(back.graph.rule.guard_bytes, c.graph.rule.guard_bytes);
  }
  const ReadChain late = read(texts[0]);
  EXPECT_EQ(late.graph.inputs, (std::vector<uint32_t>{0, 2, 3, 6}));
  EXPECT_EQ(late.graph.inputs_of(1)[0], 1u);
  EXPECT_EQ(late.graph.inputs_of(2)[0], 4u);
}

// One thing has up to 2^60 bytes; all of them together, and a budget, may have more.
TEST(JsonPlan, SumsOfLargeSizesComeBack) {
  const std::string huge = std::to_string(size_t{1} << 60);
  const ReadChain r = read("{\"input\": {\"bytes\": 1}, \"segments\": [{\"name\": \"a\", \"forward_seconds\": 1, \"backward_seconds\": 1, \"output_bytes\": " + huge + ", \"slots\": [{\"name\": \"s\", \"bytes\": " + huge +
                           ", \"cost_seconds\": 1}]}]}", 1);
  ckpt_chain chain(std::make_shared<const plan::Graph>(r.graph), r.roots);
  ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
  desc.budget_bytes = SIZE_MAX;
  ckpt_plan *made = nullptr, *back = nullptr;
  ASSERT_EQ(ckpt_plan_create(&chain, &desc, &made), CKPT_OK) << last_error();
  const std::unique_ptr<ckpt_plan, decltype(&ckpt_plan_destroy)> plan(made, ckpt_plan_destroy);
  EXPECT_GT(made->planned.prediction.peak, size_t{1} << 60);
  char *text = nullptr;
  ASSERT_EQ(ckpt_plan_to_json(made, &text), CKPT_OK) << last_error();
  const std::unique_ptr<char, decltype(&ckpt_text_free)> owner(text, ckpt_text_free);
  ASSERT_EQ(ckpt_plan_from_json(text, std::strlen(text), "p.json", &chain, &back), CKPT_OK) << last_error();
  EXPECT_EQ(ckpt_plan_hash(back), ckpt_plan_hash(made));
  EXPECT_EQ(back->budget_bytes, SIZE_MAX);
  ckpt_plan_destroy(back);
}

// A plan goes out and comes back: same hash, peak and height; anything else in it is found out.
TEST(JsonPlan, GoesOutAndComesBack) {
  uint32_t plans = 0;
  for (uint64_t seed = 1; seed <= 400 / plan_test::kSlow; ++seed) {
    plan_test::Genes genes = plan_test::Genes::endless(seed);
    const plan_test::RandomGraph r = plan_test::random_graph(&genes);
    ckpt_chain chain(std::make_shared<const plan::Graph>(r.graph), r.roots);
    ckpt_plan_desc desc = CKPT_PLAN_DESC_INIT;
    desc.strategy = genes.one_in(2) ? CKPT_STRATEGY_AUTO : CKPT_STRATEGY_EVERY_SEGMENT;
    ckpt_plan *made = nullptr;
    if (ckpt_plan_create(&chain, &desc, &made) != CKPT_OK) continue;
    const std::unique_ptr<ckpt_plan, decltype(&ckpt_plan_destroy)> plan(made, ckpt_plan_destroy);
    char *text = nullptr;
    ASSERT_EQ(ckpt_plan_to_json(made, &text), CKPT_OK) << last_error();
    const std::unique_ptr<char, decltype(&ckpt_text_free)> owner(text, ckpt_text_free);
    ckpt_plan *back = nullptr;
    ASSERT_EQ(ckpt_plan_from_json(text, std::strlen(text), "p.json", &chain, &back), CKPT_OK) << last_error() << "\n" << text;
    const std::unique_ptr<ckpt_plan, decltype(&ckpt_plan_destroy)> other(back, ckpt_plan_destroy);
    ASSERT_EQ(ckpt_plan_hash(back), ckpt_plan_hash(made)) << seed;
    ASSERT_EQ(back->planned.prediction.peak, made->planned.prediction.peak);
    ASSERT_EQ(back->planned.prediction.height, made->planned.prediction.height);
    ++plans;
    char *events = nullptr;
    ASSERT_EQ(ckpt_plan_to_trace_json(made, &events), CKPT_OK) << last_error();
    ckpt_text_free(events);
  }
  EXPECT_GT(plans, 200u / plan_test::kSlow);
}

}  // namespace
}  // namespace ckpt::json
