#include "samebits/backend/moves.h"

#include <string>
#include <string_view>

namespace sb {

Result<Moves> moves_of(const Exec& exec) {
  for (const auto& table : {cpu_moves(), emulated_moves(), cuda_moves()}) {
    for (const Moves& m : table) {
      if (m.device == exec.device->id().kind && std::string_view(m.arch) == exec.arch) return m;
    }
  }
  return refuse(Code::kRefused, std::string("move rows on ") + exec.arch,
                "no backend of this build serves that architecture", "--backend cpu");
}

}  // namespace sb
