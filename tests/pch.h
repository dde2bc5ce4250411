// The tests' precompiled header: the product's, and GoogleTest.
#pragma once

#include "common/pch/pch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
