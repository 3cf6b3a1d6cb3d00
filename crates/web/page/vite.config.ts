import { defineConfig } from 'vite';

export default defineConfig({
  build: {
    target: 'es2022',
    // The content security policy forbids inline scripts, so only the images of the pieces are
    // inlined, as data in the style sheet.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  server: {
    // For `npm run dev` together with a running `selfmate serve`.
    proxy: { '/api': 'http://127.0.0.1:8000' },
  },
});
