# cmake --install; find_package(headshare) brings headshare::<folder> back (see examples/consumer).
