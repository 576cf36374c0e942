// The table of planted faults: what each is, the bug it stands for, and where it must be found.
#include "samebits/chain/fault.h"

namespace sb {
namespace {

constexpr uint8_t kTrainOnly = schedule_bit(ScheduleKind::kTrain);
constexpr uint8_t kDecodeOnly = schedule_bit(ScheduleKind::kDecode);
constexpr uint8_t kPagedSteps = kDecodeOnly | schedule_bit(ScheduleKind::kChunked);

constexpr const char* kScored = "first scored row";
constexpr const char* kFirst = "0";
constexpr const char* kSecond = "1";  // position 0 is not rotated

}  // namespace

const std::vector<FaultInfo>& all_faults() {
  using enum FaultLayers;
  static const std::vector<FaultInfo> all = {
      {FaultKind::kSoftcapMissing, "softcap-missing", "the final softcap is left out",
       "a port that overlooks final_logit_softcapping; greedy ids stay the same", kAllSchedules,
       Deviation::kSoftcapMissing, Tap::kHeadSoftcap, kOutside, false, kScored},
      {FaultKind::kSoftcapBf16, "softcap-bf16", "the softcap is computed and kept in bf16",
       "tanh before the cast of logits to fp32", kAllSchedules, Deviation::kSoftcapBf16,
       Tap::kHeadSoftcap, kOutside, false, kScored},
      {FaultKind::kWindowMinusOne, "window-minus-1", "sliding layers see one key fewer",
       "a window given as keys to the left where the kernel counts the query too", kAllSchedules,
       Deviation::kWindowMinusOne, Tap::kAttnCtx, kSliding, false, "window - 1"},
      {FaultKind::kWindowPlusOne, "window-plus-1", "sliding layers see one key more",
       "a window given with the query where the kernel counts keys to the left", kAllSchedules,
       Deviation::kWindowPlusOne, Tap::kAttnCtx, kSliding, false, "window"},
      {FaultKind::kLayerScalarDropped, "layer-scalar-dropped", "layer_scalar is read as 1",
       "a per-layer buffer that was never loaded and kept its default", kAllSchedules,
       Deviation::kScalarDropped, Tap::kLayerOut, kAll, true, kFirst},
      {FaultKind::kEmbedScaleUnrounded, "embed-scale-unrounded",
       "the embedding scale is the fp32 square root, not its bf16 value",
       "a scale whose rounding follows the dtype the weights were loaded in", kAllSchedules,
       Deviation::kEmbedScaleUnrounded, Tap::kEmbed, kOutside, false, kFirst},
      {FaultKind::kGemmLeafOrder, "gemm-leaf-order",
       "the down GEMM runs one chain over K instead of a tree of 8 leaves",
       "split-K, or TP partial sums, in another order than the other side's", kAllSchedules,
       Deviation::kLeafOrder, Tap::kMlpDownAcc, kAll, true, kFirst},
      {FaultKind::kSwappedPage, "swapped-page", "two pages of a block table are exchanged",
       "a block table that is stale or indexed by another pool", kPagedSteps, Deviation::kNone,
       Tap::kAttnCtx, kAll, false, "first step behind two full pages"},
      {FaultKind::kStaleSlot, "stale-slot", "one decoded token's key and value are not written",
       "a cache slot that still holds an earlier request's entry", kDecodeOnly, Deviation::kNone,
       Tap::kAttnCtx, kAll, false, "first decoded token"},
      {FaultKind::kKeyLeak, "key-leak", "a packed row reads a key of the row before it",
       "sequence offsets of packed training that are one row early", kTrainOnly,
       Deviation::kKeyLeak, Tap::kAttnCtx, kAll, false, "0 of the second packed row"},
      {FaultKind::kDroppedLastBlock, "dropped-last-block",
       "a decode step of one row skips its last block of keys",
       "a split decode kernel whose last split is lost at batch size 1", kDecodeOnly,
       Deviation::kDropLastBlock, Tap::kAttnCtx, kAll, false, "64, where a row decodes alone"},
      {FaultKind::kRopeSwap, "rope-swap",
       "sliding and global layers have each other's theta and rotated part",
       "one rope config for both layer types, or the two read in the wrong order", kAllSchedules,
       Deviation::kNone, Tap::kAttnQRope, kAll, false, kSecond},
      {FaultKind::kPRopeExponent, "p-rope-exponent",
       "frequencies of global layers count the rotated lanes, not the whole head",
       "p-RoPE as older partial RoPE: long prompts slide into repetition", kAllSchedules,
       Deviation::kNone, Tap::kAttnQRope, kGlobal, false, kSecond},
      {FaultKind::kPRopePairing, "p-rope-pairing",
       "global layers rotate pairs inside the rotated prefix, not (i, i + D/2)",
       "a frequency table cut to its rotating part instead of padded with zeros", kAllSchedules,
       Deviation::kRopePairing, Tap::kAttnQRope, kGlobal, false, kSecond},
      {FaultKind::kVAfterKNorm, "v-after-k-norm",
       "global layers take V from the normed K instead of the raw projection",
       "K=V layers whose V is copied after k_norm", kAllSchedules, Deviation::kNone,
       Tap::kAttnVNorm, kGlobal, false, kFirst},
      {FaultKind::kNormOnePlusW, "norm-one-plus-w", "every weighted norm multiplies by 1 + w",
       "zero-centred gamma, as Gemma 1 to 3 have it", kAllSchedules, Deviation::kNormOnePlusW,
       Tap::kAttnNorm, kAll, false, kFirst},
      {FaultKind::kSoftcapTwice, "softcap-twice", "the final softcap is applied twice",
       "a model that caps its logits under a loss that caps them again", kAllSchedules,
       Deviation::kSoftcapTwice, Tap::kHeadSoftcap, kOutside, false, kScored},
      {FaultKind::kSoftcapXTanh, "softcap-x-tanh", "the softcap is x tanh(x/c), not c tanh(x/c)",
       "a fused RL loss with another formula", kAllSchedules, Deviation::kSoftcapXTanh,
       Tap::kHeadSoftcap, kOutside, false, kScored},
      {FaultKind::kTemperatureTwice, "temperature-twice",
       "capped logits are divided by T twice; at T = 1 nothing changes",
       "an engine that divides by T under a logprob provider that does too", kAllSchedules,
       Deviation::kNone, Tap::kHeadLse, kOutside, false, kScored},
      {FaultKind::kRowShift, "row-shift",
       "each log-probability is the next scored token's; the last stands twice",
       "labels shifted twice, or not at all", kAllSchedules, Deviation::kNone, Tap::kLogp, kOutside,
       false, kScored},
      {FaultKind::kGateUpSwapped, "gate-up-swapped", "gelu is applied to up and multiplied by gate",
       "a fused gate_up weight that was concatenated in the other order", kAllSchedules,
       Deviation::kNone, Tap::kMlpGelu, kAll, true, kFirst},
  };
  return all;
}

}  // namespace sb
