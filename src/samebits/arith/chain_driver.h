// The loops around chain_simd.h: panels of rows, chunks of k, blocks of columns, every ragged edge.
// b is unpacked once per panel into a buffer that stays in L1 and is used by all of its rows (one
// row of profile ieee takes it from registers); a is prepared once per panel and chunk. Between
// chunks the chain's state is c itself.
// Nothing in the files compiled for a wider Isa may leave an inline function for the linker to
// share, hence no standard containers and no scalar helpers here.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "samebits/arith/chain_simd.h"

namespace sb::arith {

inline constexpr int kPanelRows = 64;        // most rows that share one unpacking of b
inline constexpr int kRowStepBudget = 5376;  // prepared steps of a: 504 KiB, half of an L2

SB_INLINE constexpr int least(int a, int b) { return a < b ? a : b; }

template <class V, Profile kProfile, bool kColumns>
struct ChainDriver {
  static constexpr int kLanes = V::kLanes;
  static constexpr int kBlocks = 32 / kLanes;  // column blocks unpacked together: 32 columns
  static constexpr int kSteps = 2;  // steps unpacked together: one line of every row of b
  static constexpr int kAhead = 4;  // groups of kSteps between a prefetch and its use
  static constexpr bool kCodes = kProfile != Profile::kIeee;

  // Columns column … column + count − 1 and products k … k + depth − 1 of b; the rest reads as
  // zero.
  static SB_INLINE void load_pairs(const bf16* const* b, int column, int count, int k, int depth,
                                   typename V::I (&pair)[8]) {
    if (count >= kLanes && depth >= 16) [[likely]] {
      if constexpr (kColumns) {
        V::load_columns(b + k, column, pair);
      } else {
        V::load_rows(b + column, k, pair);
      }
    } else {
      load_edge(b, column, count, k, depth, pair);
    }
  }

  static SB_INLINE void unpack(const bf16* const* b, int column, int count, int k, int depth,
                               BlockStep<V>& out) {
    typename V::I pair[8];
    load_pairs(b, column, count, k, depth, pair);
    unpack_pairs<V, kCodes>(pair, out);
  }

  static __attribute__((noinline)) void load_edge(const bf16* const* b, int column, int count,
                                                  int k, int depth, typename V::I (&pair)[8]) {
    bf16 tile[kLanes][16];
    const bf16* rows[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      rows[j] = tile[j];
      for (int i = 0; i < 16; ++i) {
        tile[j][i].bits = 0;
        if (j < count && i < depth) {
          tile[j][i].bits = kColumns ? b[k + i][column + j].bits : b[column + j][k + i].bits;
        }
      }
    }
    V::load_rows(rows, 0, pair);
  }

  // `steps` steps of one row, of which k elements exist; the rest reads as zero. Attention calls
  // with few columns, so this has to be quick as well. AVX2, the floor of both users of this file.
  static void prepare_row(const bf16* a, int k, int steps, RowStep* out) {
    for (int s = 0; s < steps; ++s, ++out, a += 16, k -= 16) {
      const bf16* from = a;
      bf16 last[16];
      if (k < 16) {
        for (int i = 0; i < 16; ++i) last[i].bits = i < k ? a[i].bits : uint16_t{0};
        from = last;
      }
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m128i half[2] = {_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)};
      for (int i = 0; i < 2; ++i) {
        const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half[i]), 16);
        _mm256_storeu_ps(out->value + 8 * i, _mm256_castsi256_ps(wide));
      }
      const __m256i absolute = _mm256_and_si256(x, _mm256_set1_epi16(0x7fff));
      const __m256i field = _mm256_srli_epi16(absolute, 7);
      const __m256i zero = _mm256_cmpeq_epi16(absolute, _mm256_setzero_si256());
      const __m256i non_finite = _mm256_cmpeq_epi16(field, _mm256_set1_epi16(0xff));
      __m256i code = _mm256_add_epi16(_mm256_max_epi16(field, _mm256_set1_epi16(1)),
                                      _mm256_set1_epi16(kCodeBias));
      code = _mm256_blendv_epi8(code, _mm256_set1_epi16(kRowNonFiniteCode), non_finite);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out->code), _mm256_andnot_si256(zero, code));
    }
  }

  template <int R, int NB>
  static int run_blocks(const RowStep* const* a, const BlockStep<V>* packed, int from, int blocks,
                        int steps, float* c, int64_t ldc, int columns) {
    for (; from + NB <= blocks; from += NB) {
      run_steps<V, kProfile, R, NB>(a, packed + from * kSteps, kSteps, steps, c + from * kLanes,
                                    ldc, columns - from * kLanes);
    }
    return from;
  }

  // `rows` rows through the unpacked blocks, several chains at a time to hide the latency of one.
  static void run_rows(const RowStep* a, int64_t row_stride, int rows, const BlockStep<V>* packed,
                       int blocks, int steps, float* c, int64_t ldc, int columns) {
    const auto pointers = [&](int r, auto& out) {
      for (auto& p : out) p = a + (r++) * row_stride;
    };
    int r = 0;
    for (const RowStep* p[4]; r + 4 <= rows; r += 4) {
      pointers(r, p);
      run_blocks<4, 1>(p, packed, 0, blocks, steps, c + r * ldc, ldc, columns);
    }
    for (const RowStep* p[2]; r + 2 <= rows; r += 2) {
      pointers(r, p);
      const int done = run_blocks<2, 2>(p, packed, 0, blocks, steps, c + r * ldc, ldc, columns);
      run_blocks<2, 1>(p, packed, done, blocks, steps, c + r * ldc, ldc, columns);
    }
    for (const RowStep* p[1]; r < rows; ++r) {
      pointers(r, p);
      const int done =
          run_blocks<1, kBlocks>(p, packed, 0, blocks, steps, c + r * ldc, ldc, columns);
      run_blocks<1, 1>(p, packed, done, blocks, steps, c + r * ldc, ldc, columns);
    }
  }

  static constexpr int round_up_steps(int steps) { return (steps + kSteps - 1) / kSteps * kSteps; }

  // Asks for the lines that will be read for these columns and one group of steps. Hardware
  // prefetchers follow far fewer streams than the 32 rows that are read side by side. Into L2: rows
  // of a weight often lie a large power of two apart and would evict each other from L1.
  static SB_INLINE void prefetch(const bf16* const* b, int column, int count, int k, int depth) {
    constexpr int kLineElements = 32;
    const int rows = kColumns ? depth : count, length = kColumns ? count : depth;
    const bf16* const* row = kColumns ? b + k : b + column;
    const int offset = kColumns ? column : k;
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < length; i += kLineElements) __builtin_prefetch(row[r] + offset + i, 0, 2);
    }
  }

  // Rows of one panel through steps first … first + steps − 1, all columns.
  static void run_chunk(const RowStep* a, int rows, int first, int steps, const bf16* const* b,
                        int n, int k, float* c, int64_t ldc) {
    BlockStep<V> packed[kBlocks * kSteps];
    constexpr int kGroupColumns = kBlocks * kLanes;
    for (int column = 0; column < n; column += kGroupColumns) {
      const int columns = least(n - column, kGroupColumns);
      const int blocks = (columns + kLanes - 1) / kLanes;
      for (int s = 0; s < steps; s += kSteps) {
        const int count = least(steps - s, kSteps);
        // Where this loop will be kAhead groups later; past the end of k that is the next columns.
        const int ahead = s + kAhead * kSteps, whole = round_up_steps(steps);
        const int later_column = ahead < steps ? column : column + kGroupColumns;
        const int later_step = ahead < steps ? ahead : ahead - whole;
        const int later_depth = least(k - (first + later_step) * 16, kSteps * 16);
        for (int j = 0; j < blocks; ++j) {
          const int at = later_column + j * kLanes;
          prefetch(b, at, least(n - at, kLanes), (first + later_step) * 16, later_depth);
          for (int i = 0; i < count; ++i) {
            const int at_k = (first + s + i) * 16;
            unpack(b, column + j * kLanes, columns - j * kLanes, at_k, k - at_k,
                   packed[j * kSteps + i]);
          }
        }
        run_rows(a + s, steps, rows, packed, blocks, count, c + column, ldc, columns);
      }
    }
  }

  // Steps i < count ≤ kSteps of one row through NB blocks. kAsk: also asks for the lines that lie
  // kAhead groups later in the same rows of b; loops of prefetch() cost a quarter of the speed.
  template <int NB, bool kAsk>
  static SB_INLINE void row_group(const RowStep* a, int count, const bf16* const* b, int column,
                                  int columns, int k, int depth, typename V::F (&acc)[NB]) {
    static_assert(kSteps == 2);
    constexpr int kAheadElements = kAsk ? kAhead * kSteps * 16 : 0;
#pragma GCC unroll 4
    for (int j = 0; j < NB; ++j) {
      const int at = column + j * kLanes, left = columns - j * kLanes;
      if (count == kSteps && left >= kLanes && depth >= kSteps * 16) [[likely]] {
        typename V::I pair[kSteps][8];
        if constexpr (kColumns) {
          for (int i = 0; i < kSteps; ++i) V::load_columns(b + k + 16 * i, at, pair[i]);
        } else {
          V::template load_two_steps<kAheadElements>(b + at, k, pair);
        }
        for (int i = 0; i < kSteps; ++i) ieee_pairs<V>(a[i], pair[i], acc[j]);
      } else {
        if constexpr (kAsk) {
          prefetch(b, at, left, k + kAheadElements, least(depth - kAheadElements, kSteps * 16));
        }
        for (int i = 0; i < count; ++i) {
          typename V::I pair[8];
          load_pairs(b, at, left, k + 16 * i, depth - 16 * i, pair);
          ieee_pairs<V>(a[i], pair, acc[j]);
        }
      }
    }
  }

  // One row of profile ieee through NB blocks. Unpacking costs more than the products here, so b's
  // pairs and c stay in registers. The chains of the blocks hide each other's latency.
  template <int NB>
  static __attribute__((noinline)) void run_row_blocks(const RowStep* a, int first, int steps,
                                                       const bf16* const* b, int column, int n,
                                                       int k, float* c) {
    const int columns = least(n - column, NB * kLanes);
    typename V::F acc[NB];
    for (int j = 0; j < NB; ++j) {
      acc[j] = V::canonical(V::load_first(c + column + j * kLanes, columns - j * kLanes));
    }
    int s = 0;
    if constexpr (!kColumns) {
      for (; s + kAhead * kSteps < steps; s += kSteps) {
        const int at_k = (first + s) * 16;
        row_group<NB, true>(a + s, kSteps, b, column, columns, at_k, k - at_k, acc);
      }
    }
    for (; s < steps; s += kSteps) {
      const int at_k = (first + s) * 16, ahead = s + kAhead * kSteps;
      const int later_column = ahead < steps ? column : column + NB * kLanes;
      const int later_k = (first + (ahead < steps ? ahead : ahead - round_up_steps(steps))) * 16;
      prefetch(b, later_column, least(n - later_column, NB * kLanes), later_k,
               least(k - later_k, kSteps * 16));
      row_group<NB, false>(a + s, least(steps - s, kSteps), b, column, columns, at_k, k - at_k,
                           acc);
    }
    for (int j = 0; j < NB; ++j) {
      V::store_first(c + column + j * kLanes, columns - j * kLanes, V::canonical(acc[j]));
    }
  }

  static void run_row(const RowStep* a, int first, int steps, const bf16* const* b, int n, int k,
                      float* c) {
    int column = 0;
    for (; column + (kBlocks - 1) * kLanes < n; column += kBlocks * kLanes) {
      run_row_blocks<kBlocks>(a, first, steps, b, column, n, k, c);
    }
    for (; column < n; column += kLanes) run_row_blocks<1>(a, first, steps, b, column, n, k, c);
  }

  static void run(const bf16* const* a, int m, const bf16* const* b, int n, int k, float* c,
                  int64_t ldc) {
    if (m <= 0 || n <= 0 || k <= 0) return;
    const int all_steps = (k + 15) / 16;
    const int panels = (m + kPanelRows - 1) / kPanelRows;
    const int panel_rows = (m + panels - 1) / panels;
    const int most = kRowStepBudget / panel_rows;
    const int chunk = all_steps < most ? all_steps : most;
    RowStep* prepared = row_step_scratch(int64_t{panel_rows} * chunk);
    for (int row = 0; row < m; row += panel_rows) {
      const int rows = m - row < panel_rows ? m - row : panel_rows;
      for (int first = 0; first < all_steps; first += chunk) {
        const int steps = all_steps - first < chunk ? all_steps - first : chunk;
        for (int r = 0; r < rows; ++r) {
          prepare_row(a[row + r] + first * 16, k - first * 16, steps, prepared + r * steps);
        }
        if constexpr (kProfile == Profile::kIeee) {
          if (rows == 1) {
            run_row(prepared, first, steps, b, n, k, c + row * ldc);
            continue;
          }
        }
        run_chunk(prepared, rows, first, steps, b, n, k, c + row * ldc, ldc);
      }
    }
  }
};

template <class V, Profile kProfile>
inline constexpr ChainKernels kSimdKernels = {ChainDriver<V, kProfile, false>::run,
                                              ChainDriver<V, kProfile, true>::run};

template <class V>
inline const ChainKernels* simd_kernels(Profile profile) {
  switch (profile) {
    case Profile::kSm90: return &kSimdKernels<V, Profile::kSm90>;
    case Profile::kGfx942: return &kSimdKernels<V, Profile::kGfx942>;
    case Profile::kIeee: break;
  }
  return &kSimdKernels<V, Profile::kIeee>;
}

}  // namespace sb::arith
