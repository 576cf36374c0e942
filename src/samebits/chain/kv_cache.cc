#include "samebits/chain/kv_cache.h"

#include <unistd.h>

#include <algorithm>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/base/rng.h"

namespace sb {
namespace {

const char* group_name(int g) { return layer_type_name(LayerType(g)); }

}  // namespace

KvCache::KvCache(Device& device, const Architecture& arch, uint64_t epoch,
                 const KvCacheOptions& options)
    : device_(device), arch_(arch), epoch_(epoch), options_(options) {}

KvCache::~KvCache() {
  for (auto& l : layers_) {
    if (l.memory) device_.release(l.memory.ptr, static_cast<size_t>(l.memory.bytes()));
  }
}

Result<std::unique_ptr<KvCache>> KvCache::create(Device& device, const Architecture& arch,
                                                 const RankPlan& plan, uint64_t epoch,
                                                 const KvCacheOptions& options) {
  for (int g = 0; g < 2; ++g) {
    if (options.page_size[g] < 1 || options.num_pages[g] < 1) {
      return refuse(Code::kRefused, "make a paged cache",
                    std::string(group_name(g)) + " layers have page size " +
                        std::to_string(options.page_size[g]) + " and " +
                        std::to_string(options.num_pages[g]) + " pages",
                    "at least one page of at least one token");
    }
    if (options.num_pages[g] * options.page_size[g] > INT32_MAX) {
      return refuse(Code::kRefused, "make a paged cache",
                    std::string(group_name(g)) + " slots do not fit in 32 bits",
                    "fewer or smaller pages");
    }
  }
  std::unique_ptr<KvCache> cache(new KvCache(device, arch, epoch, options));
  SB_DO(cache->allocate(plan));
  return cache;
}

// The pool is filled at once, so one that cannot fit is refused before the system runs out.
Status KvCache::check_memory(const RankPlan& plan) const {
  double bytes = 0;
  for (const LayerType type : arch_.layers) {
    const int g = static_cast<int>(type);
    bytes += 4.0 * static_cast<double>(options_.num_pages[g]) * options_.page_size[g] *
             plan.kv(type).heads * arch_.attention(type).head_dim;
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= 0.8 * memory) return {};
  return refuse(Code::kEnvironment, "make a paged cache",
                "its " + std::to_string(options_.num_pages[0]) + " and " +
                    std::to_string(options_.num_pages[1]) + " pages of " +
                    std::to_string(options_.page_size[0]) + " and " +
                    std::to_string(options_.page_size[1]) + " tokens take " +
                    std::to_string(static_cast<int64_t>(bytes)) + " bytes, the machine has " +
                    std::to_string(static_cast<int64_t>(memory)),
                "smaller pages (--page), or fewer or shorter rows at a time");
}

Status KvCache::allocate(const RankPlan& plan) {
  for (int g = 0; g < 2; ++g) {
    Group& group = groups_[g];
    group.pages.resize(options_.num_pages[g]);
    for (int64_t p = options_.num_pages[g]; p-- > 0;) group.free.push_back(static_cast<int32_t>(p));
    if (options_.order_seed) {
      CounterRng rng(options_.order_seed, g);
      for (size_t i = group.free.size(); i > 1; --i) {
        std::swap(group.free[i - 1], group.free[rng.below(static_cast<uint32_t>(i))]);
      }
    }
  }
  SB_DO(check_memory(plan));
  for (int i = 0; i < arch_.num_layers(); ++i) {
    const LayerType type = arch_.layers[i];
    const int g = static_cast<int>(type);
    const int64_t heads = plan.kv(type).heads, width = arch_.attention(type).head_dim;
    const int64_t page = options_.page_size[g], pages = options_.num_pages[g];
    Layer layer;
    KvView& v = layer.view;
    v.kind = KvView::kPaged;
    v.page_size = static_cast<int>(page);
    v.num_pages = pages;
    v.page_stride = 2 * page * heads * width;
    layer.page_bytes = v.page_stride * dtype_bytes(Dtype::kBf16);
    layer.memory = make_view(nullptr, Dtype::kBf16, {pages, v.page_stride}, device_.id());
    SB_TRY(ptr, device_.alloc(static_cast<size_t>(layer.memory.bytes())));
    layer.memory.ptr = ptr;
    device_.fill(ptr, options_.fill, static_cast<size_t>(layer.memory.bytes()));
    v.k = static_cast<bf16*>(ptr);
    if (options_.layout == KvLayout::kSplit) {
      v.v = v.k + page * heads * width;
      v.token_stride = heads * width;
      v.head_stride = width;
    } else {
      v.v = v.k + width;
      v.token_stride = 2 * width;
      v.head_stride = page * 2 * width;
    }
    if (groups_[g].first_layer < 0) groups_[g].first_layer = i;
    layers_.push_back(layer);
  }
  return {};
}

KvView KvCache::layer_view(int layer) const {
  KvView v = layers_[layer].view;
  v.epoch = epoch_;
  return v;
}

Result<KvCache::Handle> KvCache::open(const std::string& owner) {
  const uint64_t id = xxh64(owner, 1);
  for (const auto& s : sequences_) {
    if (s.open && s.owner == id) {
      return refuse(Code::kRefused, "open a cache for " + owner, "it is open already");
    }
  }
  auto slot = std::find_if(sequences_.begin(), sequences_.end(), [](auto& s) { return !s.open; });
  if (slot == sequences_.end()) slot = sequences_.insert(slot, Sequence{});
  *slot = Sequence{.owner = id, .open = true};
  return static_cast<Handle>(slot - sequences_.begin());
}

void KvCache::close(Handle h) {
  Sequence& s = sequences_.at(h);
  drop_table(s.table);
  s = Sequence{};
}

Status KvCache::check_free(int g, int64_t pages) const {
  const Group& group = groups_[g];
  const int64_t free = static_cast<int64_t>(group.free.size());
  if (pages <= free) return {};
  return refuse(Code::kEnvironment, "extend a sequence in the cache",
                std::to_string(pages - free) + " pages of " +
                    std::to_string(options_.page_size[g]) + " tokens lack for " + group_name(g) +
                    " layers: " + std::to_string(free) + " of " +
                    std::to_string(group.pages.size()) + " are free",
                "more pages, or fewer sequences at a time");
}

KvCache::Entry KvCache::take_page(int g, uint64_t owner) {
  Group& group = groups_[g];
  SB_ASSERT(!group.free.empty(), "a page is taken before check_free");
  const int32_t page = group.free.back();
  group.free.pop_back();
  group.pages[page] = Page{owner, epoch_, 1};
  return {page, owner};
}

void KvCache::drop_table(const Tables& table) {
  for (int g = 0; g < 2; ++g) {
    for (const Entry& e : table[g]) {
      if (e.page != kPoisonPage) drop_page(g, e.page);
    }
  }
}

void KvCache::drop_page(int g, int32_t page) {
  Page& p = groups_[g].pages[page];
  SB_ASSERT(p.references > 0, "a cache page is given back twice");
  if (--p.references > 0) return;
  p = Page{};
  groups_[g].free.push_back(page);
  for (int i = 0; i < arch_.num_layers(); ++i) {
    if (static_cast<int>(arch_.layers[i]) != g) continue;
    const Layer& l = layers_[i];
    device_.fill(l.view.k + page * l.view.page_stride, options_.fill,
                 static_cast<size_t>(l.page_bytes));
  }
}

void KvCache::copy_page(int g, int32_t from, int32_t to) {
  std::vector<unsigned char> host;
  for (int i = 0; i < arch_.num_layers(); ++i) {
    if (static_cast<int>(arch_.layers[i]) != g) continue;
    const Layer& l = layers_[i];
    host.resize(static_cast<size_t>(l.page_bytes));
    device_.copy_out(host.data(), l.view.k + from * l.view.page_stride, host.size());
    device_.copy_in(l.view.k + to * l.view.page_stride, host.data(), host.size());
  }
}

Status KvCache::extend(Handle h, int64_t count) {
  Sequence& s = sequences_.at(h);
  std::array<int64_t, 2> more{};
  for (int g = 0; g < 2; ++g) {
    more[g] =
        ceil_div(s.length + count, options_.page_size[g]) - static_cast<int64_t>(s.table[g].size());
    SB_DO(check_free(g, more[g]));
  }
  for (int g = 0; g < 2; ++g) {
    for (int64_t i = 0; i < more[g]; ++i) s.table[g].push_back(take_page(g, s.owner));
  }
  s.length += count;
  return {};
}

void KvCache::describe(Handle h, int64_t count, HostBatch& batch) const {
  const Sequence& s = sequences_.at(h);
  for (int g = 0; g < 2; ++g) {
    const int64_t page = options_.page_size[g];
    for (int64_t p = s.length - count; p < s.length; ++p) {
      batch.slot[g].push_back(static_cast<int32_t>(s.table[g][p / page].page * page + p % page));
    }
    // Table rows have one width per batch; a wider sequence widens the earlier rows.
    const int columns = std::max(batch.table_columns[g], static_cast<int>(s.table[g].size()));
    std::vector<int32_t> wide;
    const int64_t before = batch.table_columns[g] ? static_cast<int64_t>(batch.table[g].size()) /
                                                        batch.table_columns[g]
                                                  : 0;
    for (int64_t r = 0; r < before; ++r) {
      const auto row = batch.table[g].begin() + r * batch.table_columns[g];
      wide.insert(wide.end(), row, row + batch.table_columns[g]);
      wide.resize((r + 1) * columns, kPoisonPage);
    }
    for (const Entry& e : s.table[g]) wide.push_back(e.page);
    wide.resize((before + 1) * columns, kPoisonPage);
    batch.table[g] = std::move(wide);
    batch.table_columns[g] = columns;
  }
}

// The first key that this or a later query may read; where window pages are kept, all may be.
int64_t KvCache::first_needed(int g, int64_t query) const {
  if (LayerType(g) == LayerType::kGlobal || !options_.free_window) return 0;
  return std::max<int64_t>(0, query - arch_.window + 1);
}

Status KvCache::check_page(const Entry& e, int g, int64_t i) const {
  const std::string asked =
      "read page " + std::to_string(i) + " of a sequence's " + group_name(g) + " keys";
  if (e.page == kPoisonPage) {
    return refuse(Code::kRefused, asked, "a page inside the window was given back");
  }
  const Page& p = groups_[g].pages.at(e.page);
  if (p.references == 0) return refuse(Code::kRefused, asked, "the page was given back");
  if (p.owner != e.owner) {
    return refuse(Code::kRefused, asked, "the page belongs to another sequence");
  }
  if (p.epoch != epoch_) {
    return refuse(Code::kRefused, asked, "its entries were made with other weights",
                  "drop the cache when weights are updated");
  }
  return {};
}

Status KvCache::check(Handle h, int64_t count) const {
  const Sequence& s = sequences_.at(h);
  for (int g = 0; g < 2; ++g) {
    const int64_t page = options_.page_size[g], begin = s.length - count;
    for (int64_t i = first_needed(g, begin) / page; i < ceil_div(s.length, page); ++i) {
      const Entry& e = s.table[g][i];
      SB_DO(check_page(e, g, i));
      const bool written = (i + 1) * page > begin;
      if (written && e.owner != s.owner) {
        return refuse(
            Code::kRefused,
            "write page " + std::to_string(i) + " of a sequence's " + group_name(g) + " keys",
            "the page belongs to a published prefix, which others read",
            "adopt the prefix: its last page is then copied");
      }
    }
  }
  return {};
}

void KvCache::trim(Handle h) {
  if (!options_.free_window) return;
  const int g = static_cast<int>(LayerType::kSliding);
  Sequence& s = sequences_.at(h);
  const int64_t first = first_needed(g, s.length) / options_.page_size[g];
  for (int64_t i = 0; i < std::min<int64_t>(first, s.table[g].size()); ++i) {
    if (s.table[g][i].page == kPoisonPage) continue;
    drop_page(g, s.table[g][i].page);
    s.table[g][i] = Entry{};
  }
}

int64_t KvCache::pages_in_use(LayerType t) const {
  const Group& g = groups_[static_cast<int>(t)];
  return static_cast<int64_t>(g.pages.size() - g.free.size());
}

}  // namespace sb
