// Cases of the operators that know positions: RoPE, cache writes and attention.
#pragma once

#include "samebits/gate/operator_case.h"

namespace sb {

// kContexts: one query at the end of each of several contexts, paged; kPacked: two rows of training
// in one linear step; kChunk: queries at the end of a long paged context.
enum class AttentionLayout { kContexts, kPacked, kChunk };

OperatorCase rope_case(const Architecture& arch, LayerType type, const CaseOptions& o,
                       ThreadPool& pool);
OperatorCase kv_write_case(const Architecture& arch, LayerType type, const CaseOptions& o,
                           ThreadPool& pool);
OperatorCase attention_case(const Architecture& arch, LayerType type, AttentionLayout layout,
                            const CaseOptions& o, ThreadPool& pool);

}  // namespace sb
