"""Where one session's own capability is reached: ssh/2, cdp/1.3, openpi/0 and others."""
