import { defineConfig } from 'vite';

export default defineConfig({
  build: {
    target: 'es2022',
    // The content security policy allows no inline script, so nothing is inlined but the pieces'
    // pictures, which are data in the style sheet.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  server: {
    // `npm run dev` beside a running `selfmate serve`.
    proxy: { '/api': 'http://127.0.0.1:8000' },
  },
});
