// Chains from any text: refused with one line, or a chain whose own text gives it again.
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ckpt_chain *chain = nullptr;
  const ckpt_status status = ckpt_chain_from_json(reinterpret_cast<const char *>(data), size, size % 3 == 0 ? 1 : 0, "c.json", &chain);
  if (status != CKPT_OK) {
    expect(chain == nullptr);
    expect_one_line("c.json: ");
    return 0;
  }
  char *text = nullptr;
  expect(ckpt_chain_to_json(chain, &text) == CKPT_OK);
  ckpt_chain *again = nullptr;
  expect(ckpt_chain_from_json(text, std::strlen(text), 0, "again", &again) == CKPT_OK);
  expect(ckpt_chain_hash(again) == ckpt_chain_hash(chain));
  ckpt_chain_destroy(again);
  ckpt_text_free(text);
  ckpt_chain_destroy(chain);
  return 0;
}
