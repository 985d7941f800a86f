#include "headshare/base/strings/shell_word.h"

#include <gtest/gtest.h>

namespace headshare {
namespace {

TEST(ShellWordTest, OnlyWhatAShellWouldChangeStandsInQuotes) {
  EXPECT_EQ(shell_word("--out=a/b-2.txt"), "--out=a/b-2.txt");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace headshare
