// KvCache: the paged keys and values of one rank. Sliding and global layers are two groups with
// their own page size and page tables. A page knows its owner and the weights its entries were made
// with; a table that leads to a page of another owner or epoch is refused before anything runs.
//
// Pages fill in any order (order_seed), lie in one of two layouts, hold NaN while unused, and a
// sliding page goes back to the pool once it fell out of the window: none of this changes bits.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samebits/backend/kv_view.h"
#include "samebits/base/device.h"
#include "samebits/chain/batch.h"
#include "samebits/chain/rank_plan.h"

namespace sb {

enum class KvLayout : uint8_t {
  kSplit,        // [pages, 2, page, heads, D]
  kInterleaved,  // [pages, heads, page, 2·D]
};

struct KvCacheOptions {
  std::array<int, 2> page_size{16, 16};  // tokens; index: LayerType
  std::array<int64_t, 2> num_pages{0, 0};
  KvLayout layout = KvLayout::kSplit;
  uint64_t order_seed = 0;    // 0: pages are handed out ascending
  unsigned char fill = 0xff;  // byte of unused memory; 0xff is NaN
  bool free_window = true;    // give back sliding pages that no later query can see
};

class KvCache {
 public:
  static Result<std::unique_ptr<KvCache>> create(Device& device, const Architecture& arch,
                                                 const RankPlan& plan, uint64_t epoch,
                                                 const KvCacheOptions& options);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  using Handle = int;
  Result<Handle> open(const std::string& owner);
  void close(Handle h);  // gives back its pages; published ones live on
  int64_t length(Handle h) const { return sequences_.at(h).length; }

  // Makes room for `count` further tokens, or refuses (kEnvironment) saying how many pages lack.
  Status extend(Handle h, int64_t count);
  // Appends slots of the last `count` tokens and the table row of `h` to a batch.
  void describe(Handle h, int64_t count, HostBatch& batch) const;
  // Every page that the last `count` tokens' queries can see is still the one the sequence took or
  // adopted and of the present epoch, and the pages they write are its own alone.
  Status check(Handle h, int64_t count) const;
  // After a step: forgets sliding pages behind the window of the next query.
  void trim(Handle h);

  // Prefix reuse: publish keeps the first `length` tokens' pages under `key` (any text that names
  // the tokens); adopt starts an empty sequence from them. Full pages are shared, a last partial
  // page is copied. Refused where the weights have changed since, the prefix is unknown, or a page
  // that the next query needs was given back.
  Status publish(Handle h, const std::string& key, int64_t length);
  Status adopt(Handle h, const std::string& key, int64_t length);

  void forget(const std::string& key);  // gives back a published prefix
  bool knows(const std::string& key) const { return prefixes_.contains(key); }

  // The weights changed: what is cached now belongs to the past.
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

  KvView layer_view(int layer) const;
  const KvCacheOptions& options() const { return options_; }
  int64_t pages_in_use(LayerType t) const;

 private:
  struct Page {
    uint64_t owner = 0, epoch = 0;
    int references = 0;
  };
  struct Group {
    int64_t first_layer = -1;
    std::vector<Page> pages;
    std::vector<int32_t> free;  // handed out from the back
  };
  struct Entry {  // of a table: a page and who owned it when it came in
    int32_t page = kPoisonPage;
    uint64_t owner = 0;
  };
  using Tables = std::array<std::vector<Entry>, 2>;
  struct Sequence {
    uint64_t owner = 0;
    int64_t length = 0;
    Tables table;
    bool open = false;
  };
  struct Prefix {
    uint64_t epoch = 0;
    int64_t length = 0;
    Tables table;
  };
  struct Layer {
    View memory;
    KvView view;
    int64_t page_bytes = 0;
  };

  KvCache(Device& device, const Architecture& arch, uint64_t epoch, const KvCacheOptions& options);
  Status check_memory(const RankPlan& plan) const;
  Status allocate(const RankPlan& plan);
  Status check_free(int group, int64_t pages) const;
  Entry take_page(int group, uint64_t owner);
  void drop_page(int group, int32_t page);
  void copy_page(int group, int32_t from, int32_t to);
  void drop_table(const Tables& table);
  Status check_page(const Entry& entry, int group, int64_t index) const;
  int64_t first_needed(int group, int64_t query) const;

  Device& device_;
  const Architecture& arch_;
  uint64_t epoch_;
  KvCacheOptions options_;
  std::array<Group, 2> groups_;
  std::vector<Layer> layers_;
  std::vector<Sequence> sequences_;
  std::map<std::string, Prefix> prefixes_;
};

}  // namespace sb
