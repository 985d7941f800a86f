// Turns whatever ends a piece of work into one line for people.
#pragma once

#include <exception>
#include <string>

namespace headshare {

// Returns the sentence of an exception that is no request to stop: an Error's own words, libtorch's first line, "not
// enough memory", or that it is a defect in headshare.
std::string explained(const std::exception_ptr& error);

// Returns the sentence for libtorch's message that a card has no memory left, with its numbers and the way out; "" for
// another message.
std::string card_full_text(const std::string& text);

}  // namespace headshare
