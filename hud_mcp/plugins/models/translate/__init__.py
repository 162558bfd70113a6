"""The model of one provider for programs that ask in the wire form of another one."""
