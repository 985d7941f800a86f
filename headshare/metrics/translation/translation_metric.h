// Scores translations as sacreBLEU 2.6 does, to the last printed digit. A metric takes every segment (line) once, into
// a few sums; the score of a corpus, of a resample and of a mixture of systems is that of sums.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headshare/metrics/translation/mixed_number.h"

namespace headshare {

using Segments = std::vector<std::string>;     // lines of valid UTF-8
using ReferenceTexts = std::vector<Segments>;  // one or more translations of each segment: [reference][segment]

// A table has a few numbers of each segment; whole numbers, but for TER's mean length of several references.
struct SegmentTable {
  size_t columns = 0;
  std::vector<double> values = {};  // [segments, columns]

  size_t segments() const { return values.size() / columns; }
  std::span<const double> row(size_t segment) const { return {values.data() + segment * columns, columns}; }
};

// A signature has such parts: "case", "mixed".
using SignaturePart = std::pair<std::string, std::string>;

// Makes the rows of a table, one segment after the other.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // `segment` and its references have no white space at their end.
  virtual std::vector<double> row(const std::string& segment, std::span<const std::string> references) = 0;
};

class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  virtual std::string name() const = 0;                     // "BLEU", "chrF2++", "TER"
  virtual std::vector<SignaturePart> settings() const = 0;  // as sacreBLEU's signature orders them
  virtual size_t columns() const = 0;                       // of its tables
  // Returns the score, in per cent, of summed rows. `sums` may be of single precision: then it is computed in that, as
  // sacreBLEU's resampling does.
  virtual MixedNumber score(std::span<const MixedNumber> sums) const = 0;
  // Returns what sacreBLEU prints behind the score: "60.1/33.2/... (BP = 1.000 ...)". It is empty for chrF and TER.
  virtual std::string detail(std::span<const MixedNumber> sums) const;

  // Throws Error unless there is a segment and every reference has as many as the system.
  SegmentTable measure(const Segments& system, const ReferenceTexts& references) const;

 protected:
  virtual std::unique_ptr<RowReader> reader() const = 0;
};

// Returns the sums of the columns, in the order of the segments.
std::vector<MixedNumber> column_sums(const SegmentTable& table);

}  // namespace headshare
