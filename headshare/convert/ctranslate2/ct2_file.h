// A model.bin of CTranslate2, binary version 6 (ctranslate2/specs/model_spec.py): named variables, and names that stand
// for others.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "headshare/base/files/file.h"
#include "headshare/models/checkpoint.h"

namespace headshare {

struct Ct2File {
  std::string specification = {};  // "TransformerDecoderSpec"
  uint32_t revision = 0;
  NamedTensors variables = {};                      // float32, int8, int16 or int32; scalars have no dimension
  std::map<std::string, std::string> aliases = {};  // a name, and the variable that it stands for

  // The variable of that name, or what it stands for. Throws Error where there is none.
  const Tensor& variable(const std::string& name) const;
  bool has(const std::string& name) const { return variables.contains(name) || aliases.contains(name); }
};

// Writes the whole file or nothing. Throws Error for a variable of 4 GiB or more, which the format has no length for.
void write_ct2(const fs::path& path, const Ct2File& file);

// Reads such a file. Throws Error naming the file and what is wrong: it is untrusted.
Ct2File read_ct2(const fs::path& path);

}  // namespace headshare
