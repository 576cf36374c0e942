#include "samebits/base/utf8.h"

#include <gtest/gtest.h>

#include "samebits/base/result.h"

namespace sb {
namespace {

TEST(Utf8, IsStrict) {
  EXPECT_TRUE(is_utf8("aü€😀"));
  for (const char* wrong :
       {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
    EXPECT_FALSE(is_utf8(wrong));
  }
}

TEST(Utf8, PrintableShowsControlsAndStrayBytes) {
  EXPECT_EQ(printable("aü€😀 \"\\"), "aü€😀 \"\\");
  EXPECT_EQ(printable(std::string_view("\0\x1b[31m\n\x7f", 8)), "\\x00\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xff\xe2\x82"), "\\xff\\xe2\\x82");
  EXPECT_EQ(printable("\u009b"), "\\xc2\\x9b");  // the C1 form of ESC [
}

TEST(Utf8, RefusalsArePrintableFromTheStart) {
  const Refusal r = refuse(Code::kBrokenData, "read a\nb", "tensor \x1b[2J", "\xff").value();
  EXPECT_EQ(r.asked, "read a\\x0ab");
  EXPECT_EQ(r.reasons.at(0), "tensor \\x1b[2J");
  EXPECT_EQ(r.remedy, "\\xff");
}

}  // namespace
}  // namespace sb
