// Prefix reuse of the paged cache: publish and adopt.
//
// A published prefix owns its pages under an owner of its own; whoever adopts it becomes a reader
// of the full pages (the entries of its table name the prefix as their owner) and gets a copy of a
// last partial page, because it will write behind it.
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
  if (prefixes_.contains(key))
    return refuse(Code::kRefused, asked, "the prefix is published already");
  Prefix prefix{epoch_, length, {}};
  for (int g = 0; g < 2; ++g) {
    const int64_t page = options_.page_size[g], first = first_needed(g, length) / page;
    for (int64_t i = 0; i < ceil_div(length, page); ++i) {
      if (i >= first) SB_DO(check_page(s.table[g][i], g, i));
    }
  }
  // The publisher's own pages become the prefix's: it goes on reading them, and must not write
  // them. Pages of a prefix that it adopted or published earlier stay that prefix's.
  const uint64_t owner = xxh64(key, 2);
  for (int g = 0; g < 2; ++g) {
    for (int64_t i = 0; i < ceil_div(length, options_.page_size[g]); ++i) {
      Entry& e = s.table[g][i];
      if (e.page != kPoisonPage) {
        Page& page = groups_[g].pages[e.page];
        if (e.owner == s.owner) page.owner = e.owner = owner;
        page.references += 1;
      }
      prefix.table[g].push_back(e);
    }
  }
  prefixes_.emplace(key, std::move(prefix));
  return {};
}

Status KvCache::adopt(Handle h, const std::string& key, int64_t length) {
  Sequence& s = sequences_.at(h);
  const std::string asked = "start from " + std::to_string(length) + " cached tokens";
  if (s.length != 0) return refuse(Code::kRefused, asked, "the sequence has tokens already");
  if (length < 0) return refuse(Code::kRefused, asked, "a prefix has no fewer than 0 tokens");
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
  // All is checked before anything changes: a refused sequence is still empty and can be prefilled.
  for (int g = 0; g < 2; ++g) {
    const int64_t page = options_.page_size[g], first = first_needed(g, length) / page;
    SB_DO(check_free(g, length % page ? 1 : 0));
    for (int64_t i = first; i < ceil_div(length, page); ++i) {
      SB_DO(check_page(prefix.table[g][i], g, i));
    }
  }
  for (int g = 0; g < 2; ++g) {
    const int64_t page = options_.page_size[g], first = first_needed(g, length) / page;
    for (int64_t i = 0; i < ceil_div(length, page); ++i) {
      const Entry& from = prefix.table[g][i];
      if (i < first) {
        s.table[g].push_back(Entry{});
      } else if (i < length / page) {
        groups_[g].pages[from.page].references += 1;
        s.table[g].push_back(from);
      } else {
        const Entry copy = take_page(g, s.owner);
        copy_page(g, from.page, copy.page);
        s.table[g].push_back(copy);
      }
    }
  }
  s.length = length;
  return {};
}

void KvCache::forget(const std::string& key) {
  const auto found = prefixes_.find(key);
  if (found == prefixes_.end()) return;
  drop_table(found->second.table);
  prefixes_.erase(found);
}

}  // namespace sb
