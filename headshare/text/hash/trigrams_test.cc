// Tests T-FREE's hashing against values that Python's hashlib gives; tests/oracles/test_letters.py does so for whole
// words.
#include "headshare/text/hash/trigrams.h"

#include <gmock/gmock.h>

#include "headshare/text/hash/digest.h"

namespace headshare {
namespace trigrams_test {

using testing::ElementsAre;

TEST(TrigramsTest, TrigramsAreThoseOfTheBytesBetweenSpaces) {
  EXPECT_THAT(word_trigrams("a"), ElementsAre(' ' + 256 * 'a' + 65536 * ' '));
  EXPECT_THAT(word_trigrams("hello"), ElementsAre(2125676, 6645792, 7103848, 7105637, 7302252));
  EXPECT_THAT(word_trigrams("naïve"), ElementsAre(2123126, 6385184, 6649519, 7778243, 11518817, 12804462));
  EXPECT_THAT(word_trigrams("anananan"), ElementsAre(2125409, 6385249, 7233824, 7233902));  // each once
}

TEST(TrigramsTest, RowsAreDifferent) {
  EXPECT_THAT(trigram_rows(2122016, 10, 8000), ElementsAre(451, 1252, 1501, 2670, 3932, 4407, 5247, 6626, 7103, 7610));
  EXPECT_THAT(trigram_rows(2122016, 3, 32000), ElementsAre(1252, 1501, 4407));
  EXPECT_THAT(trigram_rows(2122016, 10, 12), ElementsAre(1, 2, 3, 4, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(trigram_rows(2105376, 10, 12), ElementsAre(0, 1, 2, 3, 5, 7, 8, 9, 10, 11));
  EXPECT_THAT(trigram_rows(0, 3, 3), ElementsAre(0, 1, 2));
}

TEST(TrigramsTest, LongWordsHaveTheTrigramsOfTheirBeginning) {
  std::string letters;
  for (int i = 0; i < 20'000; ++i) letters += std::to_string(i);
  const std::vector<int32_t> long_word = word_trigrams(letters);
  EXPECT_EQ(long_word, word_trigrams(letters.substr(0, kTrigramBytes)));
  EXPECT_NE(long_word, word_trigrams(letters.substr(0, kTrigramBytes - 1)));
  EXPECT_EQ(word_trigrams(std::string(10'000'000, 'x')).size(), 3U);
}

TEST(TrigramsTest, Md5) {  // RFC 1321, A.5
  EXPECT_EQ(md5("").hex(), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5("abc").hex(), "900150983cd24fb0d6963f7d28e17f72");
}

}  // namespace trigrams_test
}  // namespace headshare
