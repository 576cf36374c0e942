// The head's arithmetic after the logits, shared by the oracle and the kernels: the cap, and (m, S)
// of columns, which merge in pairs.
#pragma once

#include "samebits/arith/exp.h"
#include "samebits/arith/fp.h"
#include "samebits/arith/tanh.h"
#include "samebits/backend/op_args.h"

namespace sb {

struct MaxSum {
  float m, s;
  // No column at all. Columns that are all NaN leave m at −∞ too, but their sum is NaN.
  SB_HD bool empty() const { return float_bits(m) == 0xff800000u && s == 0.0f; }
};

SB_HD inline MaxSum no_columns() { return {bits_float(0xff800000u), 0.0f}; }

SB_HD inline MaxSum merge(MaxSum a, MaxSum b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const float m = arith::select_max(a.m, b.m);
  return {m, arith::add(arith::mul(a.s, arith::exp(arith::sub(a.m, m))),
                        arith::mul(b.s, arith::exp(arith::sub(b.m, m))))};
}

// softcap(z) as the contract has it, or as the planted faults would.
SB_HD inline float cap_logit(float z, float cap, Deviation deviation) {
  switch (deviation) {
    case Deviation::kSoftcapMissing: return z;
    case Deviation::kSoftcapBf16:
      return rounded(arith::mul(cap, rounded(arith::tanh(rounded(arith::div(rounded(z), cap))))));
    case Deviation::kSoftcapTwice: return arith::softcap(arith::softcap(z, cap), cap);
    case Deviation::kSoftcapXTanh: return arith::mul(z, arith::tanh(arith::div(z, cap)));
    default: return arith::softcap(z, cap);
  }
}

}  // namespace sb
