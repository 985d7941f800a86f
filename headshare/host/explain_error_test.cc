#include "headshare/host/explain_error.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>

namespace headshare {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string explained_torch(const std::string& message) {
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, message);
  } catch (...) {
    return explained(std::current_exception());
  }
  return "";
}

// The message is the one of libtorch 2.11 and 2.13, as far as it stands on one line.
TEST(ExplainError, ACardWithoutMemoryIsNamedWithItsNumbers) {
  const std::string text = explained_torch(
      "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total capacity of 79.18 GiB of which 1.25 GiB is "
      "free. Including non-PyTorch memory, this process has 77.92 GiB memory in use. Of the allocated memory 70.00 GiB "
      "is allocated by PyTorch, and 7.00 GiB is reserved by PyTorch but unallocated.");
  EXPECT_THAT(text, AllOf(HasSubstr("the memory of cuda:1 is used up: 20.00 GiB more were needed"),
                          HasSubstr("of its 79.18 GiB 1.25 GiB are free"), HasSubstr("--batch-size"),
                          HasSubstr("--resume goes on")));
}

TEST(ExplainError, OtherMessagesStay) {
  EXPECT_EQ(explained_torch("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 5 bytes"),
            "not enough memory: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 5 bytes");
  EXPECT_EQ(explained_torch("shapes differ\nand more"), "libtorch: shapes differ");
  EXPECT_EQ(card_full_text("CUDA error: an illegal memory access was encountered"), "");
}

}  // namespace
}  // namespace headshare
