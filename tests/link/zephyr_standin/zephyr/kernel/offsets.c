const unsigned _OffsetAbsSyms = 1;
