// inv_freq by double-double arithmetic. r = theta^(−2/D) is the root of r^(D/2) · theta = 1, found
// by Newton steps from any 53-bit guess; r^i follows by repeated squaring. Only IEEE +, ×, fma: the
// error (below 2^−90) leaves one fp32 candidate, whatever C library supplied the guess.
#include <cmath>
#include <string>

#include "samebits/base/bits.h"
#include "samebits/model/rope_literals.h"
#include "samebits/model/rope_table.h"

namespace sb {
namespace {

struct Dd {
  double hi, lo;
};

Dd normal(double hi, double lo) {  // needs |hi| ≥ |lo|
  const double s = hi + lo;
  return {s, lo - (s - hi)};
}
Dd mul(Dd a, Dd b) {
  const double p = a.hi * b.hi;
  const double e = std::fma(a.hi, b.hi, -p) + (a.hi * b.lo + a.lo * b.hi);
  return normal(p, e);
}
Dd power(Dd x, int n) {
  Dd out{1, 0};
  for (; n > 0; n >>= 1, x = mul(x, x)) {
    if (n & 1) out = mul(out, x);
  }
  return out;
}

Dd root(double theta, int n) {  // theta^(−1/n)
  Dd r{std::pow(theta, -1.0 / n), 0};
  for (int step = 0; step < 3; ++step) {
    const Dd f = mul(power(r, n), Dd{theta, 0});  // → 1
    const double excess = (f.hi - 1.0) + f.lo;    // f.hi − 1 is exact near 1
    const double delta = -r.hi * excess / n;
    const double s = r.hi + delta, t = s - r.hi;  // two-sum
    const double e = (r.hi - (s - t)) + (delta - t);
    r = normal(s, e + r.lo);
  }
  return r;
}

// Nearest fp32 of x (normal range); false if x is within 2^−80 of the midpoint of two floats.
bool round_to_float(Dd x, float& out) {
  out = static_cast<float>(x.hi);
  const float up = std::nextafterf(out, HUGE_VALF), down = std::nextafterf(out, 0.0f);
  const double above = (static_cast<double>(out) + up) / 2;  // exact: 25 bits
  const double below = (static_cast<double>(out) + down) / 2;
  const double from_above = (x.hi - above) + x.lo, from_below = (x.hi - below) + x.lo;
  const double margin = std::ldexp(x.hi, -80);
  if (std::fabs(from_above) < margin || std::fabs(from_below) < margin) return false;
  if (from_above > 0) out = up;
  if (from_below < 0) out = down;
  return true;
}

}  // namespace

Result<std::vector<float>> rope_inv_freq(double theta, int head_dim, int pairs) {
  const std::string asked = "rotary frequencies for theta " + std::to_string(theta) +
                            ", head size " + std::to_string(head_dim);
  if (!(theta > 1.0 && theta <= 1e12) || head_dim < 2 || head_dim > 65536 || head_dim % 2 != 0 ||
      pairs < 0 || pairs > head_dim / 2) {
    return refuse(Code::kRefused, asked, std::to_string(pairs) + " rotating pairs do not fit",
                  "theta in (1, 1e12], an even head size up to 65536, pairs up to half of it");
  }
  std::vector<float> out(pairs);
  const uint32_t* literal = nullptr;
  if (theta == 1e4 && head_dim == 256 && pairs <= 128) literal = kInvFreqSliding31B;
  if (theta == 1e6 && head_dim == 512 && pairs <= 64) literal = kInvFreqGlobal31B;
  if (literal) {
    for (int i = 0; i < pairs; ++i) out[i] = bits_float(literal[i]);
    return out;
  }
  const Dd r = root(theta, head_dim / 2);
  if (pairs > 0) out[0] = 1.0f;
  for (int i = 1; i < pairs; ++i) {
    if (!round_to_float(power(r, i), out[i])) {
      return refuse(Code::kRefused, asked,
                    "frequency " + std::to_string(i) + " lies on a rounding boundary of fp32",
                    "another theta");
    }
  }
  return out;
}

}  // namespace sb
