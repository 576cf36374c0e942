// What is declared (contracts) and what can be planted (faults), as tables or JSON.
#include "samebits/cli/cmd_contract.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "samebits/chain/fault_reach.h"
#include "samebits/contract/contract.h"
#include "samebits/gate/report_text.h"
#include "samebits/model/presets.h"

namespace sb {
namespace {

nlohmann::ordered_json contract_json(const Contract& c) {
  return {{"id", c.name},
          {"formula", c.formula},
          {"rule", nlohmann::ordered_json::parse(c.json)},
          {"digest", c.digest}};
}

void list_contracts(const GlobalOptions& options) {
  if (options.json) {
    nlohmann::ordered_json j = {{"set", contract_set()}};
    for (const auto& c : all_contracts()) j["contracts"].push_back(contract_json(c));
    print(j.dump(1) + "\n");
    return;
  }
  TextTable table({"id", "computes", "digest"});
  for (const auto& c : all_contracts()) table.add({c.name, c.formula, c.digest.substr(0, 16)});
  print("set " + contract_set() + "\n\n" + table.text());
}

Status show_contract(const std::string& id, const GlobalOptions& options) {
  const auto found = find_contract(id);
  if (!found) {
    std::string known;
    for (const auto& c : all_contracts()) known += (known.empty() ? "" : ", ") + c.name;
    return refuse(Code::kUsage, "show contract " + id, "there is no contract of this ID", known);
  }
  const Contract& c = contract(*found);
  const auto j = contract_json(c);
  if (options.json) {
    print(j.dump(1) + "\n");
    return {};
  }
  TextTable table({"field", "value"});
  for (const auto& [key, value] : j["rule"].items()) {
    table.add({key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  print(c.name + "\n  " + c.formula + "\n\n" + table.text() + "\n  digest " + c.digest + "\n");
  return {};
}

// Boundaries are those of the real model's layers: the first global one is layers.5.
Status list_faults(const GlobalOptions& options) {
  SB_TRY(arch, preset_architecture("gemma4-31b"));
  TextTable table({"fault", "what goes wrong", "schedules", "first boundary", "position"});
  std::string bugs = "\nWhere such bugs come from:\n";
  auto j = nlohmann::ordered_json::array();
  for (const auto& info : all_faults()) {
    const std::string name = std::string(info.name) + (info.layered ? "[:layer=k]" : "");
    std::string boundary = boundary_name(fault_boundary({info.kind}, arch));
    if (info.layered) boundary.replace(boundary.find(".0."), 3, ".k.");
    table.add({name, info.summary, schedule_names(info.schedules), boundary, info.position});
    bugs += std::string("  ") + info.name + ": " + info.stands_for + "\n";
    j.push_back({{"name", info.name},
                 {"summary", info.summary},
                 {"stands_for", info.stands_for},
                 {"schedules", schedule_names(info.schedules)},
                 {"boundary", boundary},
                 {"position", info.position},
                 {"layer", info.layered}});
  }
  print(options.json ? j.dump(1) + "\n" : table.text() + bugs);
  return {};
}

}  // namespace

void add_contract_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd =
      app.add_subcommand("contract", "The declared arithmetic, one contract an operator");
  cmd->require_subcommand(1);
  cmd->footer("Examples:\n  samebits contract list\n  samebits contract show rmsnorm.v1 --json");
  CLI::App* list = cmd->add_subcommand("list", "All contracts, with the digest of the set");
  list->footer("Examples:\n  samebits contract list");
  list->callback([&options] { list_contracts(options); });
  CLI::App* show = cmd->add_subcommand("show", "One contract, field by field");
  show->footer("Examples:\n  samebits contract show rmsnorm.v1");
  auto id = std::make_shared<std::string>();
  show->add_option("ID", *id, "as listed, e.g. gemm_tree.v1")->required();
  show->callback([id, &options, &exit_code] {
    const auto status = show_contract(*id, options);
    exit_code = status ? 0 : report(status.error(), options);
  });
}

void add_inject_command(CLI::App& app, GlobalOptions& options, int& exit_code) {
  CLI::App* cmd = app.add_subcommand("inject", "The faults that --inject can plant");
  cmd->require_subcommand(1);
  cmd->footer(
      "Examples:\n"
      "  samebits inject list\n"
      "  samebits verify tiny --inject window-plus-1\n"
      "  samebits score tiny --tokens rows.jsonl --inject layer-scalar-dropped:layer=3 --out "
      "s.jsonl\n"
      "A fault that cannot act in the chosen schedule, rows or temperature is refused.");
  CLI::App* list =
      cmd->add_subcommand("list", "All faults, and the boundary where each must be found");
  list->footer("Examples:\n  samebits inject list --json");
  list->callback([&options, &exit_code] {
    const auto status = list_faults(options);
    exit_code = status ? 0 : report(status.error(), options);
  });
}

}  // namespace sb
