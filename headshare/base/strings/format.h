// Writes quantities as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headshare {

std::string format_bytes(double bytes);       // "1.5 GiB", "640 B"
std::string format_duration(double seconds);  // "850 ms", "12 s", "3:05", "2:10:00", "3 days"
std::string format_count(double count);       // "8.88M", "27,648" below 100,000
std::string format_fixed(double value, int digits);
std::string format_rounded(double value, int digits);  // the same, without the sign of what is 0 in so many digits
std::string format_signed(double value, int digits);   // format_rounded() with its sign: "+0.0213", "-1.5", "+0.0"

// Joins names to "a, b and c".
std::string list_text(const std::vector<std::string>& names, const std::string& last = "and");

// Returns a share from 0 to 1 as "37%", "4.1%", "0.03%": two digits that say something.
std::string percent_text(double share);
std::string percent_text(double share, int digits);  // with so many digits behind the point: "12.34%"

}  // namespace headshare
