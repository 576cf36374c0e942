// Prefix reuse of the paged cache: publish and adopt.
//
// A published prefix owns its pages under an owner of its own; whoever adopts it becomes a reader of
// the full pages (the page's owner is then the prefix, which the sequence carries) and gets a copy of
// a last partial page, because it will write behind it.
#include <algorithm>

#include "samebits/base/bits.h"
#include "samebits/base/digest.h"
#include "samebits/chain/kv_cache.h"

namespace sb {

Status KvCache::publish(Handle h, const std::string& key, int64_t length) {
  Sequence& s = sequences_.at(h);
  const std::string asked = "publish " + std::to_string(length) + " cached tokens";
  if (length < 0 || length > s.length) {
    return refuse(Code::kRefused, asked, "the sequence holds " + std::to_string(s.length));
  }
  if (prefixes_.contains(key)) return refuse(Code::kRefused, asked, "the prefix is published already");
  Prefix prefix{xxh64(key, 2), epoch_, length, {}};
  for (int g = 0; g < 2; ++g) {
    const int64_t pages = ceil_div(length, options_.page_size[g]);
    const int64_t first = first_visible(g, length) / options_.page_size[g];
    for (int64_t i = 0; i < pages; ++i) {
      const int32_t page = s.table[g][i];
      if (page == kPoisonPage && i >= first) {
        return refuse(Code::kRefused, asked, "a page inside the window was given back");
      }
      prefix.table[g].push_back(page);
    }
  }
  for (int g = 0; g < 2; ++g) {
    for (int32_t page : prefix.table[g]) {
      if (page == kPoisonPage) continue;
      groups_[g].pages[page].references += 1;
      groups_[g].pages[page].owner = prefix.owner;
    }
  }
  // The publisher reads through the prefix from now on; it must not write into its pages.
  s.prefix_owner = prefix.owner;
  s.prefix_length = length;
  prefixes_.emplace(key, std::move(prefix));
  return {};
}

Status KvCache::adopt(Handle h, const std::string& key, int64_t length) {
  Sequence& s = sequences_.at(h);
  const std::string asked = "start from " + std::to_string(length) + " cached tokens";
  if (s.length != 0) return refuse(Code::kRefused, asked, "the sequence has tokens already");
  if (length == 0) return {};
  const auto found = prefixes_.find(key);
  if (found == prefixes_.end()) return refuse(Code::kRefused, asked, "no such prefix is cached");
  const Prefix& prefix = found->second;
  if (prefix.epoch != epoch_) {
    return refuse(Code::kRefused, asked, "the prefix was cached with other weights",
                  "prefill it again: bits under new weights cannot come from old keys");
  }
  if (prefix.length < length) {
    return refuse(Code::kRefused, asked, "the prefix holds " + std::to_string(prefix.length));
  }
  for (int g = 0; g < 2; ++g) {
    const int64_t page = options_.page_size[g], full = length / page;
    const int64_t first = first_visible(g, length) / page;
    for (int64_t i = 0; i < ceil_div(length, page); ++i) {
      const int32_t from = prefix.table[g][i];
      if (from == kPoisonPage || i < first) {
        if (i >= first) return refuse(Code::kRefused, asked, "a page inside the window is gone");
        s.table[g].push_back(kPoisonPage);
      } else if (i < full) {
        groups_[g].pages[from].references += 1;
        s.table[g].push_back(from);
      } else {
        SB_TRY(to, take_page(g, s.owner));
        copy_page(g, from, to);
        s.table[g].push_back(to);
      }
    }
  }
  s.prefix_owner = prefix.owner;
  s.prefix_length = length;
  s.length = length;
  return {};
}

void KvCache::forget(const std::string& key) {
  const auto found = prefixes_.find(key);
  if (found == prefixes_.end()) return;
  for (int g = 0; g < 2; ++g) {
    for (int32_t page : found->second.table[g]) {
      if (page != kPoisonPage) drop_page(g, page);
    }
  }
  prefixes_.erase(found);
}

}  // namespace sb
