// Sets the theme before the first paint: the chosen one, or the system's.
try {
  const theme = localStorage.getItem('mcpx.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* no storage: the system's theme */ }
