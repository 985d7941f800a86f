// Turns whatever ends a piece of work into one line for people.
#pragma once

#include <exception>
#include <string>

namespace headshare {

// Returns the sentence of an exception that is no request to stop: an Error's own words, libtorch's first line, "not
// enough memory", or that it is a defect in headshare.
std::string explained(const std::exception_ptr& error);

}  // namespace headshare
