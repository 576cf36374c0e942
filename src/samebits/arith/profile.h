// A profile names the matrix-step arithmetic a whole run uses; an Isa names who executes it on a
// CPU.
#pragma once

#include <cstdint>

namespace sb {

enum class Profile : uint8_t { kSm90, kGfx942, kIeee };
inline constexpr Profile kProfiles[] = {Profile::kSm90, Profile::kGfx942, Profile::kIeee};
constexpr const char* profile_name(Profile p) {
  constexpr const char* kNames[] = {"sm90", "gfx942", "ieee"};
  return kNames[static_cast<int>(p)];
}

enum class Isa : uint8_t { kPlain, kAvx2, kAvx512 };
inline constexpr Isa kIsas[] = {Isa::kPlain, Isa::kAvx2, Isa::kAvx512};
constexpr const char* isa_name(Isa i) {
  constexpr const char* kNames[] = {"plain", "avx2", "avx512"};
  return kNames[static_cast<int>(i)];
}

}  // namespace sb
