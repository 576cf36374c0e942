// check_tokenizer: the third witness of the vocabulary size, beside config and embedding.
#include <nlohmann/json.hpp>

#include "samebits/model/json_strict.h"
#include "samebits/model/load.h"

namespace sb {

using nlohmann::json;

Status check_tokenizer(const std::string& dir, const Architecture& arch,
                       std::vector<std::string>& warnings) {
  const std::string path = dir + "/tokenizer.json";
  if (!path_exists(path)) return {};
  SB_TRY(map, MappedFile::open(path));
  SB_TRY(tok, parse_json_strict(map.text(), path));
  const std::string asked = "check " + path + " against the vocabulary";
  int64_t highest = -1;
  std::string name;
  bool malformed = !tok.is_object();
  auto see = [&](const json& id, const std::string& token) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > uint64_t{INT32_MAX}) {
      malformed = true;
    } else if (id.get<int64_t>() > highest) {
      highest = id.get<int64_t>();
      name = token;
    }
  };
  if (!malformed && tok.contains("model") && tok["model"].is_object() &&
      tok["model"].contains("vocab") && tok["model"]["vocab"].is_object()) {
    for (const auto& [token, id] : tok["model"]["vocab"].items()) see(id, token);
  }
  if (!malformed && tok.contains("added_tokens") && tok["added_tokens"].is_array()) {
    for (const json& t : tok["added_tokens"]) {
      if (t.is_object() && t.contains("id") && t.contains("content") && t["content"].is_string()) {
        see(t["id"], t["content"].get<std::string>());
      } else {
        malformed = true;
      }
    }
  }
  if (malformed || highest < 0) {
    return refuse(Code::kBrokenData, asked, "it holds no readable table of token ids");
  }
  if (highest >= arch.vocab) {
    return refuse(Code::kBrokenData, asked,
                  "token \"" + name + "\" has id " + std::to_string(highest) +
                      ", the config's vocab_size is " + std::to_string(arch.vocab),
                  "the tokenizer of this very checkpoint");
  }
  if (highest + 1 < arch.vocab) {
    warnings.push_back("the tokenizer has " + std::to_string(highest + 1) + " ids, vocab_size is " +
                       std::to_string(arch.vocab) +
                       "; rows without a token still count in softmax");
  }
  return {};
}

}  // namespace sb
