// Before anything is painted, so that nothing flashes: the theme chosen here, or the system's.
try {
  const theme = localStorage.getItem('mcpx.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* no storage: the system's theme */ }
