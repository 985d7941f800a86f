#include "headshare/base/prefixed.h"

#include "headshare/base/error.h"

namespace headshare {

Fields prefixed(const std::string& prefix, Fields fields) {
  for (Field& one : fields) {
    one.parse = [prefix, parse = std::move(one.parse)](const std::string& text) {
      try {
        parse(text);
      } catch (const Error& error) {
        throw Error(prefix + error.what());  // the message begins with the name
      }
    };
    one.name = prefix + one.name;
    for (std::string& alias : one.aliases) alias = prefix + alias;
  }
  return fields;
}

}  // namespace headshare
