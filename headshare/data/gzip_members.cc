#include "headshare/data/gzip_members.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr size_t kRoom = size_t{1} << 18;
constexpr int kGzip = 16 + MAX_WBITS;  // zlib's word for data with a gzip header
constexpr Bytef kFirstByte = 0x1f;     // of a member

}  // namespace

GzipMembers::GzipMembers(std::string name, Source source)
    : name_(std::move(name)), source_(std::move(source)), room_(kRoom) {
  const bool is_gzip =
      !refill() || (stream_.avail_in > 1 && stream_.next_in[0] == kFirstByte && stream_.next_in[1] == 0x8b);
  HS_CHECK(is_gzip, name_, " is not a gzip file, though its name ends in .gz; rename it or compress it");
  HS_CHECK(::inflateInit2(&stream_, kGzip) == Z_OK, "cannot read ", name_, ": out of memory for decompression");
}

GzipMembers::~GzipMembers() { ::inflateEnd(&stream_); }

bool GzipMembers::refill() {
  size_t count = 0;  // a pipe may give a byte at a time
  for (size_t more = 1; more > 0 && count < room_.size(); count += more) {
    more = source_(room_.data() + count, room_.size() - count);
  }
  stream_.next_in = reinterpret_cast<Bytef*>(room_.data());
  stream_.avail_in = static_cast<uInt>(count);
  given_ += count;
  return count > 0;
}

// Skips the zeros that may pad a file; false at its end.
bool GzipMembers::find_member() {
  while (stream_.avail_in > 0 || refill()) {
    if (*stream_.next_in == kFirstByte) return true;
    HS_CHECK(*stream_.next_in == 0, "cannot read ", name_, ": no gzip data begins at compressed byte ", position(),
             ", where a part of it ended; fetch or compress the file again");
    ++stream_.next_in;
    --stream_.avail_in;
  }
  return false;
}

size_t GzipMembers::read(char* out, size_t bytes) {
  const auto wanted = static_cast<uInt>(std::min<size_t>(bytes, 1U << 30));
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = wanted;
  while (stream_.avail_out == wanted && wanted > 0) {
    if (!inside_ && !find_member()) break;
    inside_ = true;
    HS_CHECK(stream_.avail_in > 0 || refill(), "cannot read ", name_, ": the gzip data is cut short after ", position(),
             " compressed bytes; fetch or compress the file again");
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    HS_CHECK(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, "cannot read ", name_, ": ",
             stream_.msg == nullptr ? "the gzip data is damaged" : stream_.msg, " (near compressed byte ", position(),
             ")");
    if (status != Z_STREAM_END) continue;
    inside_ = false;
    ::inflateReset(&stream_);
  }
  return wanted - stream_.avail_out;
}

}  // namespace headshare
