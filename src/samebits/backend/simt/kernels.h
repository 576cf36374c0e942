// All kernels of this folder, and a list of them at every shape class they are built for.
#pragma once

#include "samebits/backend/simt/attention.h"
#include "samebits/backend/simt/elementwise.h"
#include "samebits/backend/simt/gemm.h"
#include "samebits/backend/simt/gpu_block.h"
#include "samebits/backend/simt/head.h"
#include "samebits/backend/simt/norm.h"
#include "samebits/backend/simt/rows.h"

#define SB_SIMT_KERNELS(X)                 \
  X(Embed<kEmbedRule>)                     \
  X(RmsNorm<kRmsNormRule>)                 \
  X(Gemm<kGemmRule, 1>)                    \
  X(Gemm<kGemmRule, 4>)                    \
  X(GemmPartial<kGemmTreeRule, 1>)         \
  X(GemmPartial<kGemmTreeRule, 4>)         \
  X(GemmFinish<kGemmTreeRule>)             \
  X(Rope<kRopeRule>)                       \
  X(KvWrite<kKvWriteRule>)                 \
  X(Attention<kSlidingAttentionRule, 64>)  \
  X(Attention<kSlidingAttentionRule, 256>) \
  X(Attention<kSlidingAttentionRule, 512>) \
  X(Attention<kGlobalAttentionRule, 64>)   \
  X(Attention<kGlobalAttentionRule, 256>)  \
  X(Attention<kGlobalAttentionRule, 512>)  \
  X(Residual<kResidualRule>)               \
  X(LayerScale<kLayerScaleRule>)           \
  X(GeluMul<kGeluMulRule>)                 \
  X(HeadTiles<kHeadRule>)                  \
  X(HeadShards<kHeadRule>)                 \
  X(HeadFinish<kHeadRule>)                 \
  X(Sample<kSampleRule>)                   \
  X(Digest)                                \
  X(Gather)
